// timeline.svg of iterations that were measured, where report.h draws plans.
//
// Input: a valid DAG; per drawing one bar per computation in the DAG's order. Slack is not drawn, a critical path where
// one is given. Output, errors, cost, threads: as report/report.h.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"
#include "report/timeline.h"

namespace perseus {

struct DrawnTimeline {
  std::string name;
  Timeline timeline;
};

void write_timeline_svg(const ComputationDag& dag, const std::vector<DrawnTimeline>& timelines, const Sink& sink);

}  // namespace perseus
