#include "sample_profile_text.h"

asm(".pushsection .rodata\nperseus_sample_begin:\n.incbin \"" PERSEUS_SAMPLE_PROFILE
    "\"\nperseus_sample_end:\n.byte 0\n.popsection\n.globl perseus_sample_begin\n.globl perseus_sample_end\n");

extern "C" {
extern const char perseus_sample_begin[], perseus_sample_end[];
}

namespace perseus {

std::string_view sample_profile_text() { return {perseus_sample_begin, perseus_sample_end}; }

}  // namespace perseus
