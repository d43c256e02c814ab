// Standard output and error of a program, where one is closed, full or lost.
//
// Threads: begin and end main() with these; write_error(): any.
#pragma once

#include <string_view>

namespace perseus {

/// A write beyond the file size limit (ulimit -f) fails with EFBIG instead of killing this process and its children. A
/// standard stream that is closed stays so for reads and writes, but no file that is opened gets its descriptor.
void prepare_standard_streams();

/// To standard error, where it can be written: a program that cannot complain goes on.
void write_error(std::string_view text);

/// The exit code so far; if it is 0 and part of standard output is lost, that of cannot_write, with a line on standard
/// error.
int exit_code_after_output(std::string_view program, int code);

}  // namespace perseus
