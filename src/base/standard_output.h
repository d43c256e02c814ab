// Reports lost standard output (a full disk, a closed pipe) as a failure of the program.
//
// Input:   the program's name and its exit code so far.
// Output:  that exit code; if it is 0 and part of the output is lost, the exit code of cannot_write and a line on
//          standard error.
// Cost:    one flush.
// Threads: call it at the end of main().
#pragma once

#include <string_view>

namespace perseus {

int exit_code_after_output(std::string_view program, int code);

}  // namespace perseus
