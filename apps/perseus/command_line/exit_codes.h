// The exit codes of a command, for --help: those with which it can end, and no others.
//
// Input:   the errors of the command's kind, see below.
// Output:  a line per exit code: 0, then in the order of base/error_table.h, then that of any command without memory.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace perseus::cli {

/// Of a program that the system gives no more memory: that of EX_OSERR. It is no ErrorCode: no answer of a server and
/// no call of the C ABI has it.
inline constexpr int kOutOfMemoryExitCode = 71;

/// Of every command: its options, and standard output.
inline constexpr std::array kTextErrors{ErrorCode::usage, ErrorCode::cannot_write};
/// Of commands that read GPUs.
inline constexpr std::array kDeviceErrors{ErrorCode::invalid_input, ErrorCode::usage, ErrorCode::not_found,
                                          ErrorCode::cannot_write};
/// Of commands that read files and compute.
inline constexpr std::array kFileErrors{ErrorCode::invalid_input, ErrorCode::usage, ErrorCode::not_found,
                                        ErrorCode::cannot_write, ErrorCode::internal};
/// Of commands that have ports, databases or processes of their own.
inline constexpr std::array kServiceErrors{ErrorCode::invalid_input, ErrorCode::usage,    ErrorCode::not_found,
                                           ErrorCode::cannot_write,  ErrorCode::internal, ErrorCode::conflict,
                                           ErrorCode::unavailable};
/// Of commands that call a server, whose errors they pass on, and of all commands together.
inline constexpr std::array kAllErrors{ErrorCode::invalid_input, ErrorCode::usage,     ErrorCode::not_found,
                                       ErrorCode::cannot_write,  ErrorCode::internal,  ErrorCode::conflict,
                                       ErrorCode::unauthorized,  ErrorCode::forbidden, ErrorCode::too_large,
                                       ErrorCode::unavailable};

std::string exit_codes_text(std::span<const ErrorCode> errors);
/// Examples, then the exit codes: the end of a command's --help.
std::string help_footer(std::span<const ErrorCode> errors, std::string_view examples);

}  // namespace perseus::cli
