// The history of jobs' iterations, per job and summed over all jobs: collects minutes in memory, writes them to the
// store, reads them.
//
// Problem: an operator wants to see over time what a job measured against its plan, and reports of iterations are too
//          many for the log.
// Input:   iterations that all ranks of a job have reported to this server; they count for the minute in which the
//          last report arrives.
// Output:  a minute is written once it is over, and in an orderly stop; under a name of its own per server and start,
//          so that a write whose outcome is unknown is repeated without counting twice. history(): the store's rows,
//          with the minutes that this server has not written yet. That of all jobs is at most kAllJobsAge_s old.
// Errors:  while the store does not accept minutes they stay in memory, at most kMostKept (the oldest are dropped).
//          history(): not_found, and those of the store.
// Cost:    two lookups per iteration; a write of up to 500 rows at a time, the next one after its answer.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "server/live/job_access.h"
#include "server/savings/job_history.h"
#include "server/savings/measured_iterations.h"
#include "server/work/store_access.h"

namespace perseus::reports {

class IterationHistory {
 public:
  /// `source`: unique per server and start.
  IterationHistory(work::StoreAccess& store, const Clock& clock, work::Due& due, live::JobAccess& access,
                   std::string source)
      : store_(store),
        clock_(clock),
        alarm_(due, work::Due::Turn::history, *this),
        access_(access),
        source_(std::move(source)) {}

  void add(const live::LiveJob& live, const std::vector<savings::WholeIteration>& measured);
  void history(const savings::HistoryQuery& query, work::Done<savings::HistoryView> done);

  /// Writes everything, before the server stops.
  void keep(work::Done<Ok> done);

  /// Minutes in memory: of 5,000 jobs, those of 40 minutes.
  static constexpr std::size_t kMostKept = 200'000;
  /// All dashboards show the history of all jobs: it is read once in this time.
  static constexpr double kAllJobsAge_s = 10;

 private:
  using Minutes = std::map<std::int64_t, store::HistoryFigures>;  ///< by start
  static constexpr std::size_t kRowsAtOnce = 500;

  /// Adds to the minute of the job, or of kAllJobs.
  void add(const std::string& job, std::int64_t start_s, const store::HistoryFigures& figures);
  void read(const savings::HistoryQuery& query, work::Done<savings::HistoryView> done);
  void history_of_all(const savings::HistoryQuery& query, const work::Done<savings::HistoryView>& done);
  /// Minutes that begin before that time, at most kRowsAtOnce.
  [[nodiscard]] std::vector<store::HistoryRow> rows_before(std::int64_t start_s) const;
  /// Writes the minutes that are over.
  void write();
  void written(const std::vector<store::HistoryRow>& rows, const Result<Ok>& done);
  void forget(const store::HistoryRow& row);
  void forget_oldest();
  /// The rows of the store with this server's own minutes.
  [[nodiscard]] std::vector<store::HistoryRow> with_own(std::vector<store::HistoryRow> rows,
                                                        const savings::HistoryQuery& query) const;

  work::StoreAccess& store_;
  const Clock& clock_;
  work::AlarmOf<&IterationHistory::write> alarm_;
  live::JobAccess& access_;
  std::string source_;
  std::unordered_map<std::string, Minutes> minutes_of_;  ///< by job: not written yet
  std::size_t size_ = 0;
  bool writing_ = false;
  struct Kept {
    savings::HistoryQuery query;
    double at_s = 0;
    savings::HistoryView view;
  };
  static constexpr std::size_t kMostViews = 8;
  std::deque<Kept> views_;               ///< of all jobs, the newest last
  std::vector<work::Done<Ok>> keepers_;  ///< wait until everything is written
};

}  // namespace perseus::reports
