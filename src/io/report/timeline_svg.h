// timeline.svg: iterations of plans, or measured ones, below each other on one time axis, bars colored by power.
//
// Input:   as io/report/report.h. A measured iteration has one bar per computation in the DAG's order; its slack is not
//          drawn, its critical path only if given.
// Output, errors, cost, threads: as io/report/report.h.
#pragma once

#include <string>
#include <vector>

#include "io/report/report.h"
#include "io/report/timeline.h"

namespace perseus::report {

void write_timeline_svg(const model::ComputationDag& dag, const std::vector<DrawnPlan>& plans, const Sink& sink);

struct DrawnTimeline {
  std::string name;
  Timeline timeline;
};
void write_timeline_svg(const model::ComputationDag& dag, const std::vector<DrawnTimeline>& timelines,
                        const Sink& sink);

}  // namespace perseus::report
