// The exact planner's frontier with the plans of all other methods as candidates: no method has a better plan.
//
// Problem: the exact planner rounds, so at some deadlines a plan of another method may need less energy. Hence the
//          plans of EnvPipe, ZeusGlobal and ZeusPerStage and the reference plans always enter the frontier; those of
//          the published method only on request, since it takes longer than the exact planner.
// Input:   a valid DAG; the exact planner's options (`candidates` may hold plans already).
// Output:  a frontier that at every deadline needs no more energy than any plan of those methods, realized alike, if
//          clocks change at once. With a switch latency or a dwell, their plans enter as far as those limits allow.
// Errors:  those of plan_perseus() if it runs. A method that is not defined for the DAG is left out.
// Cost:    the exact planner's, EnvPipe's steps and one realization per plan (docs/measurements/planner.md).
// Threads: single-threaded.
// Source:  docs/decisions/0040-no-slower-than-maximum-clock.md.
#pragma once

#include <optional>

#include "planning/planner/exact.h"

namespace perseus::baselines {

struct OtherMethods {
  std::optional<Seconds> published_unit_time;  ///< tau of the published method; nullopt: without its plans
};

Result<model::Frontier> plan_best_of_all(const model::ComputationDag& dag, planner::PlannerOptions options = {},
                                         const OtherMethods& others = {});
/// The same, unless `check` stops it: then ErrorCode::unavailable. The published method does not poll `check`.
Result<model::Frontier> plan_best_of_all(const model::ComputationDag& dag, planner::PlannerOptions options,
                                         const OtherMethods& others, StopCheck& check);

}  // namespace perseus::baselines
