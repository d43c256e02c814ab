// timeline.svg of measured iterations; report.h draws plans.
//
// Input:   a valid DAG; per drawing one bar per computation in the DAG's order. Slack is not drawn; a critical path
//          is drawn if given.
// Output:  as in io/report/report.h, like errors, cost and threads.
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
