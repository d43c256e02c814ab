// Counts a plan's clock changes and finds the shortest dwell: the demands of a plan on the hardware.
//
// Input:   a plan that fits the DAG, and its run.
// Output:  per rank; only computations whose option has a clock (not 0) count. The iteration repeats, so the first of
//          them follows the last: a rank changes its clock twice or more per iteration, or never. A rank requests a
//          change when the computation before it ends (see planning/checker/plan_run.h); dwell is the time from one
//          request to the next of the same rank, also across the end of the iteration.
// Errors:  none.
// Cost:    O(computations).
// Threads: safe concurrently.
#pragma once

#include <vector>

#include "base/units.h"
#include "planning/checker/plan_run.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::checker {

struct ClockChanges {
  int count = 0;           ///< requests per iteration
  Seconds shortest_dwell;  ///< the makespan if the clock never changes
};

std::vector<ClockChanges> count_clock_changes(const model::ComputationDag& dag, const model::Plan& plan,
                                              const PlanRun& run);

}  // namespace perseus::checker
