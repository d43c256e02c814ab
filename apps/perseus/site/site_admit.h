// perseus site admit, perseus site release: watts for a job that a scheduler is about to start.
#pragma once

#include <CLI/CLI.hpp>

#include "command_line/command.h"

namespace perseus::cli {

void add_site_admit(CLI::App& group, Command& command);
void add_site_release(CLI::App& group, Command& command);

}  // namespace perseus::cli
