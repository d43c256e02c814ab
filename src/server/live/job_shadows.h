// Time in the job that ranks see while the store does not accept what time makes due: see ShownJob.
//
// Input:   jobs whose store is late: it failed, or has not answered an append for a second.
// Output:  ShownJob as it is due, again every second; JobHooks::shown when ranks see another version.
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

  /// The store is late: applies what is due, now and when the job is woken.
  void go_on(LiveJob& live);

 private:
  JobHooks& hooks_;
  JobWakes& wakes_;
  const Clock& clock_;
};

}  // namespace perseus::live
