// Power budget of one rank: passes its ceiling, its lease and its caps to the clock controller, and knows what rules.
//
// Input:   the budget of each plan; the time of each answer of the server; the clocks of the GPU.
//          Falls have the server's time (server_clock.h); with a server that does not say it, this host's.
// Output:  limits for the helper (clock_control/clock_limit.h), which enforces them alone; tickets of caps; paces of
//          later times for the training thread (pacer.h).
// Errors:  none. Without clock control it only keeps the time: the rank reports `control`, and the server counts it at
//          the highest clock.
// Cost:    a lock and a few stores per answer of the server.
// Threads: use_control() before the others; answered() and arrives() one thread; now() any.
// Source:  docs/decisions/0051-lease-and-ceiling-of-a-budget.md.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "training/client/pacer.h"
#include "training/client/plan_follower.h"
#include "training/client/server_clock.h"
#include "training/clock_control/clock_controller.h"

namespace perseus::client {

class RankBudget {
 public:
  /// `clocks_mhz`: highest first. `control` may be null, else it must outlive this object.
  void use_control(clock_control::ClockController* control, std::vector<int> clocks_mhz);

  /// Whether the times of falls have moved: later_paces() has others then.
  bool answered(const Answered& answer);
  /// Call before the follower gets the plan. `plan_rules`: the rank follows an earlier plan at present. May turn the
  /// plan's budget into one that holds at once. Returns the ticket of a cap, which the training thread must lift after
  /// it has requested its clocks again; 0: none.
  std::uint32_t arrives(ClockPlan& plan, bool plan_rules);

  struct Now {
    int ceiling_mhz = 0;  ///< 0: no budget
    double lease_left_s = 0;
    double lease_s = 0;
    bool fallen = false;  ///< a fall that was announced has come, and no plan after it
    [[nodiscard]] bool expired() const { return ceiling_mhz != 0 && (fallen || lease_left_s <= 0); }
  };
  [[nodiscard]] Now now(double now_s) const;
  /// Of the falls of the budget in force, by this host's clock.
  [[nodiscard]] std::vector<LaterPace> later_paces() const;

 private:
  /// The highest clock of the plan; the ceiling if it names none.
  [[nodiscard]] static int highest_clock(const ClockPlan& plan, int ceiling_mhz);
  [[nodiscard]] std::int64_t valid_until_ns() const;
  /// The falls of the budget in force; each ceiling is a supported clock.
  void take_falls();
  /// The same falls, at the times that the last answer says; whether one has moved. Those that have come stay.
  bool adjust_falls();
  [[nodiscard]] std::int64_t monotonic_ns(double at_s) const;

  clock_control::ClockController* control_ = nullptr;
  std::vector<int> clocks_mhz_;
  mutable std::mutex mutex_;
  std::optional<PlanBudget> budget_;  ///< its ceiling is a supported clock
  double answered_s_ = 0;
  ServerClock server_clock_;
  std::vector<clock_control::CeilingFall> falls_;  ///< of budget_->ahead, in its order
};

}  // namespace perseus::client
