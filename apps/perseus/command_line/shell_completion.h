// Completion of commands and options for bash, zsh and fish.
//
// Input:   the tree of commands.
// Output:  a script of that shell; values and positionals complete to file names.
#pragma once

#include <string>

#include "command_line/command_tree.h"

namespace perseus::cli {

std::string bash_completion(const CommandEntry& program);
std::string zsh_completion(const CommandEntry& program);
std::string fish_completion(const CommandEntry& program);

}  // namespace perseus::cli
