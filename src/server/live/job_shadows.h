// The view that ranks have of a job while the store does not accept what time makes due: see ShownJob.
//
// Input:   jobs whose store is late: it failed, or has not answered an append for a second.
// Output:  ShownJob::shadow, recast every second; JobHooks::shown when ranks see another version.
// Errors:  none.
// Cost:    a copy of the job, O(ranks), when the store becomes late.
// Threads: io thread.
// Source:  docs/decisions/0032.
#pragma once

#include "base/clock.h"
#include "server/live/job_hooks.h"
#include "server/live/job_wakes.h"

namespace perseus::live {

class JobShadows {
 public:
  JobShadows(JobHooks& hooks, JobWakes& wakes, const Clock& clock) : hooks_(hooks), wakes_(wakes), clock_(clock) {}

  void begin(LiveJob& live);
  /// Applies to the shadow what has become due since.
  void touch(LiveJob& live) { cast(live, nullptr); }
  /// What time makes due is durable again, unless something is still being written.
  void end(LiveJob& live);

 private:
  void cast(LiveJob& live, const jobs::Job* before);

  JobHooks& hooks_;
  JobWakes& wakes_;
  const Clock& clock_;
};

}  // namespace perseus::live
