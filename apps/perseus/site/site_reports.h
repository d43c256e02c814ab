// perseus site proof and forecast: what a site drew under its limits, and what the announced ones will mean.
//
// Output:  a row per step and domain.
// Errors:  the server's.
// Threads: one.
#pragma once

#include <CLI/CLI.hpp>

#include "command_line/command.h"

namespace perseus::cli {

void add_site_reports(CLI::App& group, Command& command);

}  // namespace perseus::cli
