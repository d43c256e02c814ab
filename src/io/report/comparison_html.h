// A comparison as one self-contained page without scripts: the drawing and both tables.
// Input, errors, cost, threads: as io/report/comparison.h.
#pragma once

#include <vector>

#include "io/report/comparison.h"

namespace perseus::report {

void write_comparison_html(const ComparisonInput& input, const std::vector<PairComparison>& pairs, const Sink& sink);

}  // namespace perseus::report
