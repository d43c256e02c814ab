// frontier.svg: realized points, lower bound, everything at maximum clock and, if given, T'.
// Input, output, errors, cost, threads: as io/report/report.h.
#pragma once

#include "io/report/report.h"

namespace perseus::report {

void write_frontier_svg(const ReportInput& input, const Sink& sink);

}  // namespace perseus::report
