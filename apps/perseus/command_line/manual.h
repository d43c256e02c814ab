// The tables of the command line as plain values, and what is made of them: man pages and completion.
//
// Input:   the CLI11 application with all commands added.
// Output:  per command its options and subcommands, in the order of --help; hidden ones are left out.
#pragma once

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

/// "perseus-plan", the page of "perseus plan".
std::string page_name(const CommandEntry& command);
/// A page in man(7) macros without warnings of groff and mandoc; a command's subcommands are sections. `perseus` lists
/// all commands and names their pages; other commands describe their options. `date`, "2026-11-23", is in the header.
std::string man_page(const CommandEntry& command, bool lists_pages, const std::string& version,
                     const std::string& date);

/// Scripts that complete commands and options; values and positionals complete to file names.
std::string bash_completion(const CommandEntry& program);
std::string zsh_completion(const CommandEntry& program);
std::string fish_completion(const CommandEntry& program);

}  // namespace perseus::cli
