// The clocks of one stage rank at the frontier point that its pipeline runs.
//
// Input:   the job's plan, the frontier that it names, or its profiling window; one rank.
// Output:  one entry per clock-controlled computation in execution order. A clock that the rank does not support
//          becomes the next higher supported clock (never slower than planned), or its highest. Without a frontier:
//          the highest clock for every instruction known of the rank (its own list, otherwise the schedule's), or 0
//          ("leave the clock") if its clocks are not known.
// Errors:  none.
// Cost:    O(computations of the rank).
// Threads: pure functions.
// Source:  paper section 4.4 (the clocks apply to all replicas of a stage).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "planning/model/schedule.h"
#include "server/jobs/job.h"

namespace perseus::policies {

/// The point that steps of another shape run.
struct OtherShape {
  int microbatches = 0;
  const jobs::CharacterizedPipeline* pipeline = nullptr;
  int point = 0;
};
/// The plan's schedule for that rank; the plan must have a point for the rank's pipeline.
std::shared_ptr<const jobs::StageSchedule> make_plan_schedule(const jobs::Job& job, const jobs::Rank& rank,
                                                              const jobs::CharacterizedPipeline& pipeline,
                                                              const std::vector<OtherShape>& others = {});
/// The highest clocks; `shape` gives the computations, if known.
std::shared_ptr<const jobs::StageSchedule> make_maximum_clock_schedule(const jobs::Job& job, const jobs::Rank& rank,
                                                                       const jobs::PipelineShape* shape);
/// The clocks of the job's last profiling window.
std::shared_ptr<const jobs::StageSchedule> make_window_schedule(const jobs::Job& job, const jobs::Rank& rank,
                                                                const model::Schedule& schedule);

/// Of all clocks that the schedule sets; nothing: it sets none. O(clocks) at the first call.
std::optional<jobs::ClockSpan> clock_range(const jobs::StageSchedule& schedule);

/// The lowest supported clock that is no slower, or the highest; `supported` highest first, empty: all.
Megahertz supported_clock(Megahertz planned, const std::vector<int>& supported);

}  // namespace perseus::policies
