// The frontiers of a comparison in one drawing, as in the paper's figure 9.
// Input, errors, cost, threads: as io/report/comparison.h.
#pragma once

#include "io/report/comparison.h"

namespace perseus::report {

void write_comparison_svg(const ComparisonInput& input, const Sink& sink);

}  // namespace perseus::report
