// The calls of a job's ranks at this server: those that wait for a plan, the time of each rank's last one, and which
// ranks have ended.
//
// Problem: a rank whose process has ended looks like one that is cut off: neither calls.
// Input:   calls, as they arrive; waits, as WaitingRanks begins and ends them; the ranks whose host has closed the
//          connection of a wait (io/http/http_server.h).
// Output:  the waits; when each rank called last. A rank has ended if its host closed its wait, as a kernel does for a
//          process that ends in any way, or if it registered, and it has not called since: a client waits for its plan
//          all the time. A host that is cut off closes nothing.
// Errors:  none.
// Cost:    O(1); waits() O(waits).
// Threads: io thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "server/jobs/requests.h"
#include "server/work/executor.h"

namespace perseus::live {

/// A wait of a rank for a plan.
struct Waiter {
  int rank = 0;
  std::int64_t have_version = 0;
  std::optional<double> deadline_s;
  work::Done<jobs::PlanAnswer> done;
  bool asks_once = false;  ///< as in WaitForPlan
  std::int64_t epoch = 0;  ///< as in WaitForPlan
};

class RankCalls {
 public:
  std::map<jobs::WaitId, Waiter> waiters;
  static constexpr double kLook_s = 15;
  double next_look_s = 0;             ///< from when on a call is the occasion to look for ranks that do not call
  double quiet_since_s = 0;           ///< no rank that does not wait was heard last before; see all_wait()
  bool logged_highest_clock = false;  ///< that a rank that requests its plan once got the highest clock

  [[nodiscard]] bool waits(int rank) const;
  /// By rank, up to the last one that waits.
  [[nodiscard]] std::vector<bool> waiting() const;
  void record(int rank, double now_s);
  /// The first call of a process.
  void registered(int rank, double now_s);
  void closed(int rank);
  /// A rank waited until now.
  void heard(int rank, double now_s);
  /// A process that does not hold its rank yet calls.
  void heard(double now_s);
  /// As last looked at, all ranks wait but those that count as silent: none of them can fall silent.
  [[nodiscard]] bool all_wait() const { return quiet_since_s == std::numeric_limits<double>::infinity(); }
  /// Another process holds the rank.
  void forget(int rank);
  /// Nothing: none since this server has the job in memory.
  [[nodiscard]] std::optional<double> last_s(int rank) const;
  /// Of any rank, or the end of its wait; 0: none.
  [[nodiscard]] double last_s() const { return last_s_; }
  /// Ranks.
  [[nodiscard]] int ended() const { return num_ended_; }

 private:
  void set_ended(int rank, bool ended);

  std::vector<double> last_call_s_;  ///< by rank; 0, and beyond the end: none
  std::vector<bool> ended_;          ///< by rank
  int num_ended_ = 0;
  double last_s_ = 0;
};

}  // namespace perseus::live
