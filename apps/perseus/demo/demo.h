// perseus demo: shows the whole system, live, on simulated GPUs; see docs/demo.md.
#pragma once

#include "command_line/command.h"

namespace perseus::cli {

void add_demo(CLI::App& app, Command& command);

}  // namespace perseus::cli
