// The table that maps an ErrorCode to its exit code, HTTP status, C code and Python exception.
//
// Problem: the command line, the HTTP server, the C ABI and the Python package each need a name or number for the same
//          failure, and copies drift apart.
// Input:   an ErrorCode.
// Output:  its row; every code has exactly one; exit codes, C codes and Python names are unique.
// Cost:    an index.
// Threads: constants.
// Source:  exit codes are those of BSD's sysexits.h.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"

namespace perseus {

struct ErrorEntry {
  ErrorCode code;
  std::string_view name;       ///< in JSON and logs
  int exit_code;               ///< of the programs
  int http_status;             ///< of the server
  int c_code;                  ///< of the C ABI, where 0 is success
  std::string_view exception;  ///< of the Python package
  std::string_view meaning;    ///< one line for --help
};

std::span<const ErrorEntry> error_table();
const ErrorEntry& entry_of(ErrorCode code);
/// Statuses outside the table count as the row that tells the caller the same: 429 as unavailable, 431 as too_large.
ErrorCode code_of_http_status(int status);

}  // namespace perseus
