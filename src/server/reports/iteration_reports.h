// Reports of iterations: progress, counts under plans, measured energies, stragglers.
//
// Input:   reports of ranks.
// Output:  the values left out, with the reason; events for counts and energies, which may be written later: see
//          "Savings" in docs/job_plans.md.
// Errors:  usage: times or numbers that cannot be right; conflict: the job is over, or a later process holds the rank.
// Cost:    O(iterations of the report).
// Threads: io thread.
#pragma once

#include "base/clock.h"
#include "server/live/job_access.h"
#include "server/plans/profiling_windows.h"
#include "server/reports/iteration_history.h"
#include "server/reports/straggler_notices.h"

namespace perseus::reports {

class IterationReports {
 public:
  IterationReports(live::JobCache& jobs, const Clock& clock, live::JobAccess& access, plans::ProfilingWindows& windows,
                   StragglerNotices& stragglers, IterationHistory& history)
      : jobs_(jobs), clock_(clock), access_(access), windows_(windows), stragglers_(stragglers), history_(history) {}

  void report(jobs::ReportIterations request, work::Done<jobs::ReportedIterations> done);
  /// Writes all reports to the store, before the server stops.
  void keep(live::LiveJob& live, work::Done<Ok> done);
  /// Rejects later reports with `unavailable`.
  void stop() { stopping_ = true; }
  /// Counted from reports of clocks since this server started.
  [[nodiscard]] const live::ClockCounts& clock_counts() const { return clock_counts_; }

 private:
  void take(live::LiveJob& live, jobs::ReportIterations request, work::Done<jobs::ReportedIterations> done);
  void note_measured(live::LiveJob& live, const jobs::ReportIterations& request);
  void note_followed(live::LiveJob& live, const jobs::ReportIterations& request);
  /// Writes the number of iterations under the plan: at each growth by an eighth, and by FollowUps every five minutes;
  /// for reports that do not name their plan, at the first one and each time the number has doubled.
  void keep_count(live::LiveJob& live, const jobs::ReportIterations& request);
  /// Collects the energies of iterations; they are written once all ranks have reported, and occasionally later. The
  /// rank has reported the first `repeated` ones before.
  void observe_energies(live::LiveJob& live, const jobs::ReportIterations& request, std::int64_t repeated);
  void write_measured(const std::string& job, const jobs::EnergyMeasured& measured);

  live::JobCache& jobs_;
  const Clock& clock_;
  live::JobAccess& access_;
  plans::ProfilingWindows& windows_;
  StragglerNotices& stragglers_;
  IterationHistory& history_;
  bool stopping_ = false;
  live::ClockCounts clock_counts_;
};

}  // namespace perseus::reports
