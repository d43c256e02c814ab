// Reads of one job: its view, its frontiers, its timeline, its ranks and their hosts.
//
// Input:   a job's id, a pipeline.
// Output:  the data as clients may see them: durable, or what time makes due while the store does not accept it. The
//          view waits for frontiers that are read from the store, not for those that are planned.
// Errors:  not_found: the job, the pipeline, or no frontier or plan yet; those of JobAccess.
// Cost:    see server/service/job_view.h.
// Threads: io thread.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "server/service/job_access.h"
#include "server/service/job_frontiers.h"
#include "server/service/rank_plans.h"

namespace perseus::service {

class JobReads {
 public:
  using Frontier = Characterizations::Frontier;

  JobReads(const Clock& clock, JobAccess& access, JobFrontiers& frontiers, const Characterizations& characterizations,
           RankPlans& plans)
      : clock_(clock), access_(access), frontiers_(frontiers), characterizations_(characterizations), plans_(plans) {}

  void job(const std::string& job, Done<jobs::JobView> done);
  void frontier(const std::string& job, int pipeline, Done<Frontier> done);
  void timeline(const std::string& job, int pipeline, Done<jobs::TimelineView> done);
  /// The first `limit` registered ranks after `after`.
  void ranks(jobs::RankQuery query, Done<jobs::RankPage> done);
  /// The first `limit` hosts after `after`, with what their ranks have reported to this server. O(ranks of the job).
  void hosts(jobs::HostQuery query, Done<jobs::HostPage> done);

 private:
  const Clock& clock_;
  JobAccess& access_;
  JobFrontiers& frontiers_;
  const Characterizations& characterizations_;
  RankPlans& plans_;
};

}  // namespace perseus::service
