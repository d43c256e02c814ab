// The power limit that a rank requests of its helper under a power budget.
//
// Problem: a plan that asks for a lower limit must not throttle what the GPU still computes under the plan before.
// Input:   the budget of each plan; the version that the training thread follows, and the time, periodically.
// Output:  ClockController::limit_power(): a higher limit at once; a lower one at once if the plan holds at once, else
//          kRunsAhead_s after the training thread has taken the plan.
// Errors:  none.
// Cost:    a lock per plan and per call of follows().
// Threads: use_control() before the others; arrives() one thread; follows() any.
// Source:  docs/decisions/0059-power-limit-as-backstop.md.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "base/units.h"
#include "training/client/plan_follower.h"

namespace perseus::client {

class BackstopRequest {
 public:
  static constexpr double kRunsAhead_s = 5;  ///< the host may have queued computations of the plan before

  void use_control(std::function<void(Watts)> limit_power) { limit_power_ = std::move(limit_power); }
  /// Call before the follower gets the plan. `follows`: the rank follows an earlier plan at present.
  void arrives(const ClockPlan& plan, bool follows);
  /// The training thread follows that version now.
  void follows(std::int64_t version, double now_s);

 private:
  void request(Watts limit);

  struct Lower {
    std::int64_t version = 0;
    Watts limit;
    std::optional<double> since_s;  ///< the version was in force
  };
  std::function<void(Watts)> limit_power_;
  std::mutex mutex_;
  Watts requested_;             ///< 0: none
  std::optional<Lower> lower_;  ///< to be requested later
};

}  // namespace perseus::client
