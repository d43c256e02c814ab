// The exact planner's frontier with the plans of all other methods among its candidates: no method has a better plan.
//
// Problem: the exact planner rounds, so that at some deadlines a plan of another method may need less energy. So their
// plans enter the frontier like its own. EnvPipe's, ZeusGlobal's and ZeusPerStage's plans and the reference plans
// always do; those of the published method where the caller asks for them, since it takes longer than the exact
// planner.
// Input:   a valid DAG; the exact planner's options (`candidates` may hold plans already).
// Output:  a frontier that at every deadline needs no more energy than any plan of those methods, realised alike, where
//          clocks change at once. With a switch latency or a dwell, their plans enter as far as those limits allow.
// Errors:  those of plan_perseus() where it is asked for. A method that is not defined for the DAG is left out.
// Cost:    the exact planner's, EnvPipe's steps and a realisation per plan (docs/measurements/planner.md).
// Threads: none inside.
// Source:  docs/decisions/0040-no-slower-than-maximum-clock.md.
#pragma once

#include <optional>

#include "planning/planner/exact.h"

namespace perseus::baselines {

struct OtherMethods {
  std::optional<Seconds> published_unit_time;  ///< tau, to have the published method's plans too
};

Result<model::Frontier> plan_best_of_all(const model::ComputationDag& dag, planner::PlannerOptions options = {},
                                         const OtherMethods& others = {});
/// The same, unless `check` stops it: then ErrorCode::unavailable. The published method does not ask it.
Result<model::Frontier> plan_best_of_all(const model::ComputationDag& dag, planner::PlannerOptions options,
                                         const OtherMethods& others, StopCheck& check);

}  // namespace perseus::baselines
