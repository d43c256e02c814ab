// perseus site set, show, limit, clear and status: the power limits that a server keeps.
//
// Input:   a TOML file (docs/power.md#on-a-server; times are seconds since 1970), or the JSON of PUT /v1/site.
// Output:  the server's answer; status as a table of domains.
// Errors:  of the file, with its line, also for keys of plans only and times before 2001; the server's.
// Threads: one.
#pragma once

#include <CLI/CLI.hpp>

#include "command_line/command.h"

namespace perseus::cli {

void add_site_server_actions(CLI::App& group, Command& command);

}  // namespace perseus::cli
