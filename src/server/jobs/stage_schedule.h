// The clocks of one stage rank, from the point of the frontier that its pipeline runs.
//
// Input:   the job's plan, the frontier that it names, or its profiling window; one rank.
// Output:  one entry per clock-controlled computation in execution order. A clock that the rank does not support
//          becomes the next higher one that it does (never slower than planned), else its highest. Where there is no
//          frontier: the highest clock for every instruction that is known of the rank (its own list, else the
//          schedule's), 0 ("leave it") if its clocks are not known.
// Errors:  none.
// Cost:    O(computations of the rank).
// Threads: pure functions.
// Source:  paper section 4.4 (replicated to all of a stage).
#pragma once

#include <memory>
#include <vector>

#include "planning/model/schedule.h"
#include "server/jobs/job.h"

namespace perseus::jobs {

/// What the plan has for that rank, whose pipeline it has a point for.
std::shared_ptr<const StageSchedule> make_plan_schedule(const Job& job, const Rank& rank,
                                                        const CharacterisedPipeline& pipeline);
/// The highest clocks; `shape` says what runs, if known.
std::shared_ptr<const StageSchedule> make_maximum_clock_schedule(const Job& job, const Rank& rank,
                                                                 const PipelineShape* shape);
/// The clocks of the job's last profiling window.
std::shared_ptr<const StageSchedule> make_window_schedule(const Job& job, const Rank& rank,
                                                          const model::Schedule& schedule);

/// The lowest supported clock that is no slower, else the highest; `supported` highest first, empty: all.
Megahertz supported_clock(Megahertz planned, const std::vector<int>& supported);

}  // namespace perseus::jobs
