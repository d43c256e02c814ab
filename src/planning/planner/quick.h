// A frontier in a few passes over the DAG, for pipelines that plan_exact() takes long to plan.
//
// Method:  for each of several uniform slowdowns, every computation takes its slowest clock within it, and the
//          remaining slack is spent evenly. With clocks that arrive late or must stay, each rank keeps one clock all
//          the time.
// Input:   a valid DAG; the switch latency and dwell of the options.
// Output:  real plans with their real times and energies, as plan_exact()'s. Without such limits the fastest point has
//          the least possible time. The bound is a constant: no plan needs less effective energy at any time, but
//          plan_exact()'s bound is tighter. `clock_limit_cost` is 0: it is not computed.
// Errors:  none.
// Cost:    O(slowdowns * (computations + dependencies)): bench/ and docs/decisions/0033 have measurements.
// Threads: pure function.
#pragma once

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/planner/exact.h"

namespace perseus::planner {

/// ErrorCode::unavailable if `check` stops it.
Result<model::Frontier> plan_quick(const model::ComputationDag& dag, const PlannerOptions& options, StopCheck& check);

}  // namespace perseus::planner
