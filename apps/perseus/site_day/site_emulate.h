// Registers `perseus site emulate`.
#pragma once

#include "command_line/command.h"

namespace perseus::cli {

void add_site_emulate(CLI::App& group, Command& command);

}  // namespace perseus::cli
