// When time makes something due for each job.
//
// Input:   JobHooks::next_wake; the index, which has the wakes of jobs that are not in memory.
// Output:  take_due(): the jobs that are due; next(): the time of the next one.
// Errors:  none.
// Cost:    O(log jobs) per call.
// Threads: io thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/live/job_hooks.h"
#include "server/live/job_index.h"

namespace perseus::live {

class JobWakes {
 public:
  JobWakes(const JobHooks& hooks, const JobIndex& index) : hooks_(hooks), index_(index) {}

  void put(double at_s, const std::string& id) { wakes_.emplace(at_s, id); }
  /// Replaces the job's wake by what its state requires.
  void set(LiveJob& live, double now_s);
  /// Replaces the job's wake by that time.
  void set_to(LiveJob& live, double at_s);
  void forget(const LiveJob& live);

  /// The jobs whose wake is due; removes their wakes.
  std::vector<std::string> take_due(double now_s);
  [[nodiscard]] std::optional<double> next() const;

 private:
  const JobHooks& hooks_;
  const JobIndex& index_;
  std::set<std::pair<double, std::string>> wakes_;
};

}  // namespace perseus::live
