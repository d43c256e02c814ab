// docs/openapi.json, taken in by the assembler as src/report/bundle.cpp does it; served at /v1/openapi.json.
#include "openapi_text.h"

asm(".pushsection .rodata\nperseus_openapi_begin:\n.incbin \"" PERSEUS_OPENAPI
    "\"\nperseus_openapi_end:\n.byte 0\n.popsection\n.globl perseus_openapi_begin\n.globl perseus_openapi_end\n");

extern "C" {
extern const char perseus_openapi_begin[], perseus_openapi_end[];
}

namespace perseus {

std::string_view openapi_text() { return {perseus_openapi_begin, perseus_openapi_end}; }

}  // namespace perseus
