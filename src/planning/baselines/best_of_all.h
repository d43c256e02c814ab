// The exact planner's frontier with the plans of all other methods as candidates: no method has a better plan.
//
// Problem: the exact planner rounds, so at some deadlines a plan of another method may need less energy. Hence the
//          plans of EnvPipe, ZeusGlobal and ZeusPerStage and the reference plans always enter the frontier, and those
//          of the published method where it takes about half a second at most and clocks change at once, or on request.
// Input:   a valid DAG; the exact planner's options (`candidates` may hold plans already).
// Output:  a frontier that at every deadline needs no more energy than any plan of those methods, realized alike, if
//          clocks change at once. With a switch latency or a dwell, their plans enter as far as those limits allow.
// Errors:  with PublishedMethod::always, those of plan_perseus(); unavailable: stopped. Otherwise a method that
//          fails or is not defined for the DAG is left out.
// Cost:    the exact planner's, EnvPipe's steps and one realization per plan (docs/measurements/planner.md).
// Threads: single-threaded.
// Source:  docs/decisions/0040-no-slower-than-maximum-clock.md.
#pragma once

#include "base/units.h"
#include "planning/planner/exact.h"

namespace perseus::baselines {

/// Whether the plans of the published method enter; where_quick: if it takes about half a second at most (4 * 10^7
/// steps times computations) and clocks change at once.
enum class PublishedMethod { no, where_quick, always };

struct OtherMethods {
  PublishedMethod published = PublishedMethod::where_quick;
  Seconds published_unit_time = Seconds(0.001);  ///< tau
};

Result<model::Frontier> plan_best_of_all(const model::ComputationDag& dag, planner::PlannerOptions options = {},
                                         const OtherMethods& others = {});
/// The same, unless `check` stops it: then ErrorCode::unavailable.
Result<model::Frontier> plan_best_of_all(const model::ComputationDag& dag, planner::PlannerOptions options,
                                         const OtherMethods& others, StopCheck& check);

}  // namespace perseus::baselines
