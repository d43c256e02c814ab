// perseus demo: the whole loop, live, on simulated GPUs; see docs/demo.md.
#pragma once

#include "command.h"

namespace perseus::cli {

void add_demo(CLI::App& app, Command& command);

}  // namespace perseus::cli
