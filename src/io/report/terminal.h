// One iteration as text for terminals: a row per rank, block height and color by power.
// Errors, cost, threads: as io/report/report.h.
#pragma once

#include <string>

#include "io/report/report.h"

namespace perseus::report {

enum class TerminalColor { none, ansi256, truecolor };

struct TerminalStyle {
  int width = 100;  ///< columns of the terminal
  TerminalColor color = TerminalColor::none;
};

std::string terminal_timeline(const model::ComputationDag& dag, const DrawnPlan& plan, const TerminalStyle& style);

}  // namespace perseus::report
