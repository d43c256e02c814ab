// Ends a program whose standard output may be a full disk or a closed pipe: lost output is a failure.
//
// Input:   the program's name and the exit code that it has earned.
// Output:  that exit code; that of cannot_write if it was 0 and part of the output was lost, with a line on standard
// error. Cost:    one flush. Threads: call it at the end of main().
#pragma once

#include <string_view>

namespace perseus {

int exit_code_after_output(std::string_view program, int code);

}  // namespace perseus
