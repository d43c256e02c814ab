// Straggler notices: announced, withdrawn, and detected from iteration times.
//
// Input:   requests; reports of ranks (detect()).
// Output:  the notices made, after their events are durable. A notice for an accelerator applies to all its live jobs
//          or to none. The plans that follow: docs/server.md, "The path of a straggler notice".
// Errors:  see server/policies/stragglers.h; not_found: no live job has the accelerator.
// Cost:    O(notices of the job); for an accelerator, O(live jobs), yielding to other work after every 64.
// Threads: io thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/live/job_access.h"
#include "server/work/executor.h"

namespace perseus::reports {

class StragglerNotices {
 public:
  StragglerNotices(live::JobCache& jobs, live::JobAccess& access, const Clock& clock, work::Executor& executor)
      : jobs_(jobs), access_(access), clock_(clock), executor_(executor) {}

  void set(jobs::SetStraggler request, work::Done<jobs::StragglerSet> done);
  void withdraw(jobs::WithdrawStraggler request, work::Done<Ok> done);
  /// Makes, changes or ends a notice where the reported times require it.
  void detect(live::LiveJob& live, const jobs::ReportIterations& request);

 private:
  using Ids = std::vector<std::string>;
  void set_in_job(jobs::SetStraggler request, work::Done<jobs::StragglerSet> done);
  void set_in_jobs(const Ids& ids, const jobs::SetStraggler& request, const work::Done<jobs::StragglerSet>& done);
  /// The live jobs with that accelerator.
  void with_accelerator(const std::string& accelerator, work::Done<Ids> done);
  /// Calls `in_one` for all these jobs from `first` on. For thousands of jobs it yields to other work after each few.
  void one_after_the_other(const std::shared_ptr<const Ids>& ids, std::size_t first,
                           std::function<void(const std::string&)> in_one);

  live::JobCache& jobs_;
  live::JobAccess& access_;
  const Clock& clock_;
  work::Executor& executor_;
};

}  // namespace perseus::reports
