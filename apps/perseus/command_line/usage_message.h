// Error message, in one line, for a command line that CLI11 rejected.
//
// Input:   CLI11's error and the innermost subcommand on the command line.
// Output:  the mistake, what is allowed, and the closest name to an unknown one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace perseus::cli {

std::string usage_message(const CLI::ParseError& error, const CLI::App& asked);

/// "unknown command 'paln'; did you mean 'plan'?", or all that are allowed.
std::string unknown_command(const std::string& word, const CLI::App& asked);

}  // namespace perseus::cli
