// timeline.svg of iterations that were measured, where report.h draws plans.
//
// Input: a valid DAG; per drawing one bar per computation in the DAG's order. Slack is not drawn, a critical path where
// one is given. Output, errors, cost, threads: as io/report/report.h.
#pragma once

#include <string>
#include <vector>

#include "io/report/report.h"
#include "io/report/timeline.h"

namespace perseus::report {

struct DrawnTimeline {
  std::string name;
  Timeline timeline;
};

void write_timeline_svg(const model::ComputationDag& dag, const std::vector<DrawnTimeline>& timelines,
                        const Sink& sink);

}  // namespace perseus::report
