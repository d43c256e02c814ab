// Keeps the list of jobs up to date with the index and the jobs in memory.
//
// Problem: an event in thousands of jobs must not rebuild the list each time.
// Input:   the index, which records changed rows.
// Output:  the list with all committed changes, when it is requested.
// Errors:  none: a damaged job has a row with the state kDamagedState.
// Cost:    O(changed rows) per update.
// Threads: io thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/live/job_cache.h"
#include "server/views/job_list.h"

namespace perseus::views {

class JobListUpdater {
 public:
  JobListUpdater(live::JobCache& jobs, const Clock& clock) : jobs_(jobs), clock_(clock) {}

  /// All jobs with their committed changes. The row of a live job has the reports that are not in its log yet since the
  /// last event or refresh().
  const JobList& list();
  void refresh(const std::string& job);
  /// The job's entry in the list. While its frontiers are read, its savings are those that the index has.
  [[nodiscard]] jobs::JobSummary summary_of(const live::LiveJob& live) const;
  /// The token that registered the job, from the index; empty: none. Nothing: not known without its log.
  std::optional<std::string> owner_of(const std::string& job);
  /// Starts or stops recording changes of the list for take_changes().
  void keep_changes(bool keep);
  std::vector<JobList::Change> take_changes();
  /// Rebuilds changed rows if there are many, so that the next request does not wait for them.
  void update_if_many();

 private:
  void update();

  live::JobCache& jobs_;
  const Clock& clock_;
  JobList list_;
};

}  // namespace perseus::views
