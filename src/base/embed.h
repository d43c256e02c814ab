// PERSEUS_EMBED(name, "path"), in namespace perseus: defines `std::string_view name()`, the file's bytes, part of the
// program. The assembler takes the file in: no generated source, and no time spent compiling half a megabyte of digits.
// The build names the path, and the file as an OBJECT_DEPENDS of the source, so that a change of it counts. A missing
// file is the assembler's error. Cost at run time: none. Threads: constants.
#pragma once

#include <string_view>

#define PERSEUS_EMBED(name, path)                                                                      \
  asm(".pushsection .rodata\n"                                                                         \
      "perseus_embedded_" #name "_begin:\n.incbin \"" path                                             \
      "\"\n"                                                                                           \
      "perseus_embedded_" #name                                                                        \
      "_end:\n.byte 0\n.popsection\n"                                                                  \
      ".globl perseus_embedded_" #name "_begin\n.globl perseus_embedded_" #name "_end\n");             \
  extern "C" const char perseus_embedded_##name##_begin[], perseus_embedded_##name##_end[];            \
  std::string_view name() { return {perseus_embedded_##name##_begin, perseus_embedded_##name##_end}; } \
  static_assert(true)
