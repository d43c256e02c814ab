// The schedule that each rank should run now: its stage of the plan in force, a profiling window, or its highest
// clocks.
//
// Input:   a job, and the version that the rank has.
// Output:  the schedule, shared by all ranks of a stage; nothing while the rank must wait for the next version.
// Errors:  conflict: the job is over; unavailable: a later version of Perseus changed it.
// Cost:    a lookup; a schedule is made once per version and stage.
// Threads: io thread.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "server/live/job_cache.h"
#include "server/plans/latency_replans.h"

namespace perseus::plans {

class RankPlans {
 public:
  RankPlans(live::JobCache& jobs, work::StoreAccess& store, const Clock& clock, const LatencyReplans& latencies)
      : jobs_(jobs), store_(store), clock_(clock), latencies_(latencies) {}

  /// The answer to a rank that has that version; nothing: it must wait.
  std::optional<Result<jobs::PlanAnswer>> plan_for(live::LiveJob& live, int rank, std::int64_t have_version);
  /// The clocks of the schedule in force for a rank that the job has; nothing: not known.
  std::optional<jobs::ClockSpan> clocks_wanted(live::LiveJob& live, const jobs::Rank& rank);
  /// The computations where there is no frontier. Nothing: being read; null: not known.
  std::optional<const jobs::PipelineShape*> max_clock_shape(live::LiveJob& live, int pipeline);

 private:
  /// The schedule in force for a rank. Null: not known yet.
  std::shared_ptr<const jobs::StageSchedule> schedule_for(live::LiveJob& live, const jobs::Rank& rank,
                                                          std::int64_t shown_version);
  std::shared_ptr<const jobs::StageSchedule> plan_schedule(live::LiveJob& live, const jobs::Rank& rank);
  void read_max_clock_shape(live::LiveJob& live, int pipeline);

  live::JobCache& jobs_;
  work::StoreAccess& store_;
  const Clock& clock_;
  const LatencyReplans& latencies_;
};

}  // namespace perseus::plans
