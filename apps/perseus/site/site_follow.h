// perseus site follow: a utility's OpenADR events as watt limits of a domain.
#pragma once

#include <CLI/CLI.hpp>

#include "command_line/command.h"

namespace perseus::cli {

void add_site_follow(CLI::App& group, Command& command);

}  // namespace perseus::cli
