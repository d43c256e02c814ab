// The exact planner's frontier with the plans of all other methods as candidates: no method has a better plan.
//
// Problem: the exact planner rounds, so at some deadlines a plan of another method may need less energy. Hence the
//          plans of EnvPipe, ZeusGlobal and ZeusPerStage and the reference plans always enter the frontier. Those of
//          the published method, which takes longer than the planner and improves next to nothing, enter on request.
// Input:   a valid DAG; the exact planner's options (`candidates` may hold plans already); tau of the published method
//          if its plans are to enter.
// Output:  a frontier that at every deadline needs no more energy than any plan of those methods, realized alike, if
//          clocks change at once. With a switch latency or a dwell, their plans enter as far as those limits allow.
// Errors:  with the published method, those of plan_perseus(); unavailable: stopped. Another method that fails or is
//          not defined for the DAG is left out.
// Cost:    the exact planner's, EnvPipe's steps and one realization per plan (docs/measurements/planner.md).
// Threads: single-threaded.
// Source:  docs/decisions/0040-no-slower-than-maximum-clock.md.
#pragma once

#include <optional>

#include "base/units.h"
#include "planning/planner/exact.h"

namespace perseus::baselines {

Result<model::Frontier> plan_best_of_all(const model::ComputationDag& dag, planner::PlannerOptions options = {},
                                         std::optional<Seconds> published_unit_time = {},
                                         StopCheck& check = StopCheck::never());

}  // namespace perseus::baselines
