// PERSEUS_EMBED(name, "path"), in namespace perseus: defines `std::string_view name()`, the bytes of a file.
//
// Problem: the assembler includes the file, so that the build compiles no generated source of half a
//          megabyte of digits.
// Input:   the build names the path, and makes the file an OBJECT_DEPENDS of the source, so that a change rebuilds it.
// Errors:  a missing file is an error of the assembler.
// Cost:    none at run time.
// Threads: constants.
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
