// A manual page of one command, in man(7) macros.
//
// Input:   a command; its subcommands are sections of the same page.
// Output:  roff text without warnings of groff and mandoc. The date in the header is `date`, "2026-11-23".
#pragma once

#include <string>

#include "command_line/command_tree.h"

namespace perseus::cli {

/// `perseus` lists all commands and names their pages; other commands describe their options.
std::string man_page(const CommandEntry& command, bool lists_pages, const std::string& version,
                     const std::string& date);

/// "perseus-plan", the page of "perseus plan".
std::string page_name(const CommandEntry& command);

}  // namespace perseus::cli
