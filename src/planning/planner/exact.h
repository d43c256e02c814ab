// The exact planner: the whole lower-bound curve, and realized plans that come close to it.
//
// Problem: given one iteration's ComputationDag, choose a clock per computation for every iteration time between the
//          fastest possible and T*, so that effective energy is least (paper section 4.1, NP-hard).
// Output:  Frontier: the curve of the linear relaxation (continuous durations along each computation's effective energy
//          hull), exact unless the DAG is large (planning/planner/relaxation.h), and the Pareto set of realized plans,
//          slowest first. The fastest point has the least makespan of any plan. Of at most 20,000 plans the Pareto set
//          is the true one.
// Errors:  none for a valid DAG (call ComputationDag::validate() first).
// Cost:    see bench/.
// Threads: single-threaded; it calls `progress` on the caller's thread.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "base/stop_check.h"
#include "base/units.h"
#include "planning/model/certificate.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::planner {

/// low works at a fifth of the deadlines; high at four times as many, in five ways each, and keeps up to twice as many
/// points. Of 500 or more of a large DAG one in five is rounded, and splices of these plans fill the rest (splices.h).
/// T_max, the usual tolerances and the deadlines of `also` are rounded in 16 to 96 ways, four times as many with high
/// effort. Each effort rounds all that a lower one does.
enum class Effort { low, normal, high };

struct PlannerOptions {
  Effort effort = Effort::normal;
  int deadlines = 1000;            ///< about as many points between T_min and T*, besides T_max and `also`
  std::vector<Seconds> also = {};  ///< further deadlines to realize, each with a point of its own if one is found
  std::vector<model::Plan> candidates = {};  ///< of other methods: no point of the frontier is worse than any of them
  Seconds switch_latency;                    ///< time from request to arrival of a clock; 0: clocks change at once
  Seconds min_dwell;  ///< shortest time between two clock changes of a rank; raised to 1.1 switch latencies
  std::function<void(double done)> progress;  ///< called repeatedly with 0..1; may be empty
};

model::Frontier plan_exact(const model::ComputationDag& dag, const PlannerOptions& options = {});
/// The same, unless `check` stops it: then ErrorCode::unavailable. At most 20 ms of a large DAG pass between two calls
/// of check.stop() with 65,000 computations (docs/decisions/0033).
Result<model::Frontier> plan_exact(const model::ComputationDag& dag, const PlannerOptions& options, StopCheck& check);

/// Rough estimate of the CPU seconds of plan_exact().
double estimated_planning_s(const model::ComputationDag& dag, const PlannerOptions& options);

}  // namespace perseus::planner
