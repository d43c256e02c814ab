// What a job would save, where a model completes a profile of one clock: each GPU that the model allows is planned.
//
// Problem: a job whose ranks set no clocks is measured at one clock only. A job is planned after it was measured, so
//          each draw of the model is planned by itself, as if it were the measurement; the savings' spread is the error
//          bar. No plan for the job comes of it.
// Input:   a profile with one clock per entry, the job's shape, the GPU as its driver names it, and its clocks.
// Output:  saving_modeled(): mean and standard deviation, or the reason why nothing is modeled, with the measured time
//          and energy of an iteration. plan_each_draw(): calls `take` with each draw's DAG and frontier.
// Errors:  nothing (unavailable) if `check` stops it before kLeastDraws are planned; later the draws so far count.
// Cost:    a plan per draw (64), quick ones where exact ones take long: seconds for large pipelines.
// Threads: pure functions.
// Source:  docs/advise.md; server/profiling/modeled_profile.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/stop_check.h"
#include "planning/planner/exact.h"
#include "server/jobs/event.h"
#include "server/jobs/pipeline_input.h"
#include "server/profiling/expected_frontier.h"

namespace perseus::profiles {

inline constexpr int kLeastDraws = 8;

struct OneClockMeasurement {
  model::Profile profile;
  jobs::PipelineShape shape;
  std::string gpu;
  std::vector<Megahertz> clocks;  ///< highest first
  int gpus = 1;                   ///< of the whole job
  jobs::InputLimits limits;
};
std::optional<jobs::SavingModeled> saving_modeled(const OneClockMeasurement& measured, StopCheck& check);

using TakeDraw = std::function<void(const model::ComputationDag& dag, const model::Frontier& frontier)>;
/// `quick`: by planner::plan_quick().
Status plan_each_draw(const model::ComputationDag& dag, const profiling::DrawnTypes& drawn,
                      const planner::PlannerOptions& options, bool quick, const TakeDraw& take, StopCheck& check);

}  // namespace perseus::profiles
