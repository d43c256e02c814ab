// The history of jobs' iterations, per job and summed over all jobs: collects minutes in memory, writes them to the
// store, reads them.
//
// Problem: an operator wants to see over time what a job measured against its plan, and reports of iterations are too
//          many for the log.
// Input:   iterations that all ranks of a job have reported to this server; they count for the minute in which the
//          last report arrives.
// Output:  minutes in the store, see work/unwritten_minutes.h. history(): those of the store and those not written yet.
//          That of all jobs is at most kAllJobsAge_s old.
// Errors:  history(): not_found, and those of the store.
// Cost:    O(1) per iteration.
// Threads: io thread.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/live/job_access.h"
#include "server/savings/job_history.h"
#include "server/savings/measured_iterations.h"
#include "server/work/unwritten_minutes.h"

namespace perseus::reports {

class IterationHistory {
 public:
  /// `source`: unique per server and start.
  IterationHistory(work::StoreAccess& store, const Clock& clock, work::Due& due, live::JobAccess& access,
                   std::string source)
      : store_(store), clock_(clock), access_(access), minutes_(store, clock, due, std::move(source), kMostKept) {}

  void add(const live::LiveJob& live, const std::vector<savings::WholeIteration>& measured);
  void history(const savings::HistoryQuery& query, work::Done<savings::HistoryView> done);

  /// Writes everything, before the server stops.
  void keep(work::Done<Ok> done) { minutes_.keep(std::move(done)); }

  /// Minutes in memory: of 5,000 jobs, those of 40 minutes.
  static constexpr std::size_t kMostKept = 200'000;
  /// All dashboards show the history of all jobs: it is read once in this time.
  static constexpr double kAllJobsAge_s = 10;

 private:
  void read(const savings::HistoryQuery& query, work::Done<savings::HistoryView> done);
  void history_of_all(const savings::HistoryQuery& query, const work::Done<savings::HistoryView>& done);

  work::StoreAccess& store_;
  const Clock& clock_;
  live::JobAccess& access_;
  work::UnwrittenMinutes<store::HistoryRow, &store::HistoryRow::job, &store::Store::write_history> minutes_;
  struct Kept {
    savings::HistoryQuery query;
    double at_s = 0;
    savings::HistoryView view;
  };
  static constexpr std::size_t kMostViews = 8;
  std::deque<Kept> views_;  ///< of all jobs, the newest last
};

}  // namespace perseus::reports
