// The calls of a job's ranks at this server: those that wait for a plan, and the time of each rank's last one.
//
// Input:   calls, as they arrive; waits, as WaitingRanks begins and ends them.
// Output:  the waits; when each rank called last.
// Errors:  none.
// Cost:    O(1); waits() O(waits).
// Threads: io thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "server/jobs/requests.h"
#include "server/service/done.h"

namespace perseus::service {

/// A wait of a rank for a plan.
struct Waiter {
  int rank = 0;
  std::int64_t have_version = 0;
  std::optional<double> deadline_s;
  Done<jobs::PlanAnswer> done;
  bool asks_once = false;  ///< as in WaitForPlan
  std::int64_t epoch = 0;  ///< as in WaitForPlan
};

class RankCalls {
 public:
  std::map<jobs::WaitId, Waiter> waiters;
  bool logged_highest_clock = false;  ///< that a rank that requests its plan once got the highest clock

  [[nodiscard]] bool waits(int rank) const;
  void record(int rank, double now_s);
  /// Nothing: none since this server has the job in memory.
  [[nodiscard]] std::optional<double> last_s(int rank) const;

 private:
  std::vector<double> last_call_s_;  ///< by rank; 0, and beyond the end: none
};

}  // namespace perseus::service
