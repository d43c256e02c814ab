// Good plans at a few deadlines, at a fraction of the cost of a whole frontier.
//
// Problem: for each profile that is still possible, online profiling needs the plans that one would make knowing it,
//          at two deadlines.
// Input:   a valid DAG; deadlines in any order.
// Output:  the Pareto set of realized plans for T_min and for each deadline, slowest first; look_up() finds the plan
//          for a deadline; the bound, from T_min on.
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

/// Incomplete if `check` stops it.
model::Frontier few_plans(const model::ComputationDag& dag, std::vector<Seconds> deadlines, StopCheck& check);

}  // namespace perseus::profiling
