// trace.json for Chrome and Perfetto: a process per plan, a thread per rank, power as counters.
// Input, output, errors, cost, threads: as io/report/report.h.
#pragma once

#include <vector>

#include "io/report/report.h"

namespace perseus::report {

void write_trace(const model::ComputationDag& dag, const std::vector<DrawnPlan>& plans, const Sink& sink);

}  // namespace perseus::report
