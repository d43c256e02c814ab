// The frontiers that each job needs: requests them, and writes to the job's log that they are there.
//
// Input:   jobs, when they are read or changed.
// Output:  frontiers in LiveJob::frontiers, and the events that they exist.
// Errors:  a failed characterization is an event; a store failure is retried.
// Cost:    O(frontiers of the job) per call.
// Threads: io thread.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "server/live/job_cache.h"
#include "server/plans/characterizations.h"

namespace perseus::plans {

class JobFrontiers {
 public:
  JobFrontiers(live::JobCache& jobs, const Clock& clock, Characterizations& characterizations)
      : jobs_(jobs), clock_(clock), characterizations_(characterizations) {}

  /// Requests those that a live job needs, and withdraws requests for those that the job no longer needs.
  void want(live::LiveJob& live);
  /// Requests them also for a job that has ended, for its viewers.
  void want_to_show(live::LiveJob& live);
  /// Calls `then` once those of its frontiers that the store has are in memory: at once, or after reading them.
  void when_read(const std::string& id, std::function<void()> then);
  /// Withdraws all requests of a job that leaves memory: planning that no other job requests stops.
  void job_removed(live::LiveJob& live);

 private:
  void forget_unneeded(live::LiveJob& live);
  void came(const std::string& id, const std::string& key, const Result<Characterizations::Frontier>& frontier);
  void retry(live::LiveJob& live);

  live::JobCache& jobs_;
  const Clock& clock_;
  Characterizations& characterizations_;
};

/// The owner to whom planning for the job is charged: its team, otherwise its token, otherwise the job itself.
std::string planning_owner_of(const jobs::Job& job);

}  // namespace perseus::plans
