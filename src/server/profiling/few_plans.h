// Good plans at a few deadlines, where a whole frontier would cost several times as much.
//
// Problem: online profiling asks of each profile that is still possible what one would plan, knowing it: at two
//          deadlines.
// Input:   a valid DAG; deadlines in any order.
// Output:  the Pareto set of realized plans for T_min and for each deadline, slowest first; look_up() finds the one
//          for a deadline.
// Errors:  none.
// Cost:    one sweep of the relaxation.
// Threads: pure.
// Source:  planning/planner/relaxation.h, planning/planner/rounding.h.
#pragma once

#include <vector>

#include "base/stop_check.h"
#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::profiling {

/// The least time that any plan can have.
Seconds least_time(const model::ComputationDag& dag);

/// The points alone, without the bound. Where `check` stops it, they are not all there.
model::Frontier few_plans(const model::ComputationDag& dag, std::vector<Seconds> deadlines, StopCheck& check);

}  // namespace perseus::profiling
