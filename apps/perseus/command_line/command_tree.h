// The tables of the command line as plain values, for man pages and completion.
//
// Input:   the CLI11 application with all commands added.
// Output:  per command its options and subcommands, in the order of --help; hidden ones are left out.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace perseus::cli {

struct OptionEntry {
  std::vector<std::string> names;  ///< "-m", "--microbatches"; a positional: "PROFILE.csv"
  std::string value;               ///< "M"; empty: a flag, or a positional
  std::string description;         ///< with its default
  std::string group;               ///< heading in --help
  bool is_positional = false;
};

struct CommandEntry {
  std::string name;  ///< with its parents: "perseus job list"
  std::string description;
  std::string footer;  ///< examples and exit codes
  std::vector<OptionEntry> options;
  std::vector<CommandEntry> subcommands;
};

CommandEntry command_tree(const CLI::App& app);

}  // namespace perseus::cli
