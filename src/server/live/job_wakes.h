// When time makes something due for each job.
//
// Input:   JobHooks::due_s; the index, which has the wakes of jobs that are not in memory.
// Output:  JobHooks::wake for each job that is due.
// Errors:  none.
// Cost:    O(log jobs) per call.
// Threads: io thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "server/live/job_hooks.h"
#include "server/live/job_index.h"
#include "server/work/due.h"

namespace perseus::live {

class JobWakes {
 public:
  JobWakes(JobHooks& hooks, const JobIndex& index, work::Due& due)
      : hooks_(hooks), index_(index), alarm_(due, work::Due::Turn::jobs, *this) {}

  void put(double at_s, const std::string& id);
  /// Replaces the job's wake by what its state requires.
  void set(LiveJob& live, double now_s);
  /// Replaces the job's wake by that time.
  void set_to(LiveJob& live, double at_s);
  void forget(const LiveJob& live);

 private:
  void wake_due(double now_s);
  void erase(double at_s, const std::string& id);
  void set_alarm() { alarm_.set(wakes_.empty() ? std::nullopt : std::optional(wakes_.begin()->first)); }

  JobHooks& hooks_;
  const JobIndex& index_;
  work::AlarmOf<&JobWakes::wake_due> alarm_;
  std::set<std::pair<double, std::string>> wakes_;
};

}  // namespace perseus::live
