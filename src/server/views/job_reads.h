// Reads of one job: its view, its frontiers, its timeline, its ranks and their hosts.
//
// Input:   a job's id, a pipeline.
// Output:  the data as clients may see them: durable, or what time makes due while the store does not accept it. The
//          view waits for frontiers that are read from the store, not for those that are planned.
// Errors:  not_found: the job, the pipeline, or no frontier or plan yet; those of JobAccess.
// Cost:    see server/live/job_view.h.
// Threads: io thread.
#pragma once

#include <string>

#include "base/clock.h"
#include "server/live/job_access.h"
#include "server/plans/job_frontiers.h"
#include "server/plans/rank_plans.h"

namespace perseus::views {

class JobReads {
 public:
  using Frontier = plans::Characterizations::Frontier;

  JobReads(const Clock& clock, live::JobAccess& access, plans::JobFrontiers& frontiers,
           const plans::Characterizations& characterizations, plans::RankPlans& plans)
      : clock_(clock), access_(access), frontiers_(frontiers), characterizations_(characterizations), plans_(plans) {}

  void job(const std::string& job, work::Done<jobs::JobView> done);
  void frontier(const std::string& job, int pipeline, work::Done<Frontier> done);
  /// The plan in force, or that of a point.
  void timeline(const std::string& job, int pipeline, std::optional<int> point, work::Done<jobs::TimelineView> done);
  /// The first `limit` registered ranks after `after`.
  void ranks(jobs::RankQuery query, work::Done<jobs::RankPage> done);
  /// The first `limit` hosts after `after`, with what their ranks have reported to this server. O(ranks of the job).
  void hosts(jobs::HostQuery query, work::Done<jobs::HostPage> done);

 private:
  const Clock& clock_;
  live::JobAccess& access_;
  plans::JobFrontiers& frontiers_;
  const plans::Characterizations& characterizations_;
  plans::RankPlans& plans_;
};

}  // namespace perseus::views
