#include "training/client/rank_budget.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "training/clock_control/mailbox.h"
#include "training/device/gpu.h"

namespace perseus::client {
namespace {

constexpr double kFarthest_s = 86400;
constexpr std::int64_t kMoved_ns = 1'000'000;  ///< the helper's steps

double unix_now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void RankBudget::use_control(clock_control::ClockController* control, std::vector<int> clocks_mhz) {
  control_ = control;
  clocks_mhz_ = std::move(clocks_mhz);
}

bool RankBudget::answered(const Answered& answer) {
  const std::lock_guard lock(mutex_);
  answered_s_ = answer.sent_by_s;
  server_clock_.answered(answer);
  if (budget_ && control_ != nullptr) control_->extend_plan(valid_until_ns());
  return answer.sent && adjust_falls();
}

std::uint32_t RankBudget::arrives(ClockPlan& plan, bool plan_rules) {
  const std::lock_guard lock(mutex_);
  if (!plan.budget) {
    falls_.clear();
    if (std::exchange(budget_, std::nullopt) && control_ != nullptr) control_->set_budget(Megahertz(0), 0);
    return 0;
  }
  // The training thread has not taken the plan that this one replaces.
  if (budget_ && control_ != nullptr && control_->capped()) plan.budget->at_once = true;
  budget_ = plan.budget;
  budget_->ceiling_mhz = device::highest_within(clocks_mhz_, plan.budget->ceiling_mhz);
  take_falls();
  if (control_ == nullptr) return 0;
  control_->set_budget(Megahertz(budget_->ceiling_mhz), valid_until_ns());
  std::uint32_t ticket = 0;
  if (budget_->at_once) {
    ticket = control_->cap(Megahertz(highest_clock(plan, budget_->ceiling_mhz)));
  } else if (!plan_rules) {
    ticket = control_->cap(Megahertz(budget_->ceiling_mhz));
  }
  control_->set_falls(falls_);  // after the cap: an earlier fall bounds the clocks until then
  return ticket;
}

void RankBudget::take_falls() {
  falls_.clear();
  for (const LaterCeiling& later : budget_->ahead) {
    falls_.push_back({monotonic_ns(later.at_s), Megahertz(device::highest_within(clocks_mhz_, later.ceiling_mhz))});
  }
}

bool RankBudget::adjust_falls() {
  const std::int64_t now_ns = clock_control::monotonic_ns();
  bool moved = false;
  for (std::size_t k = 0; k < falls_.size(); ++k) {
    const std::int64_t at_ns = monotonic_ns(budget_->ahead[k].at_s);
    if (falls_[k].at_ns <= now_ns || std::abs(at_ns - falls_[k].at_ns) < kMoved_ns) continue;
    falls_[k].at_ns = at_ns;
    moved = true;
  }
  if (moved && control_ != nullptr) control_->set_falls(falls_);
  return moved;
}

/// Of a time since 1970; now, if it is over.
std::int64_t RankBudget::monotonic_ns(double at_s) const {
  const std::int64_t now_ns = clock_control::monotonic_ns();
  const double now_s = 1e-9 * static_cast<double>(now_ns);
  const double in_s = server_clock_.earliest(at_s).value_or(now_s + at_s - unix_now_s()) - now_s;
  return now_ns + static_cast<std::int64_t>(1e9 * std::clamp(in_s, 0.0, kFarthest_s));
}

std::vector<LaterPace> RankBudget::later_paces() const {
  const std::lock_guard lock(mutex_);
  std::vector<LaterPace> paces;
  for (std::size_t k = 0; k < falls_.size(); ++k) {
    const LaterCeiling& later = budget_->ahead[k];
    if (later.paced_iteration_s <= 0) continue;
    paces.push_back({static_cast<std::uint64_t>(falls_[k].at_ns), later.paced_iteration_s});
  }
  return paces;
}

RankBudget::Now RankBudget::now(double now_s) const {
  const std::lock_guard lock(mutex_);
  if (!budget_) return {};
  Now now{budget_->ceiling_mhz, std::max(answered_s_ + budget_->lease_s - now_s, 0.0), budget_->lease_s};
  for (const clock_control::CeilingFall& fall : falls_) {
    if (1e-9 * static_cast<double>(fall.at_ns) > now_s) continue;
    now.fallen = true;
    now.ceiling_mhz = std::min(now.ceiling_mhz, fall.ceiling.value());
  }
  return now;
}

int RankBudget::highest_clock(const ClockPlan& plan, int ceiling_mhz) {
  int highest = 0;
  for (const PlannedClock& planned : plan.clocks) highest = std::max(highest, planned.clock_mhz);
  for (const ShapeClocks& other : plan.others) {
    for (const PlannedClock& planned : other.clocks) highest = std::max(highest, planned.clock_mhz);
  }
  return plan.kind == ClockPlan::Kind::maximum_clock || highest == 0 ? ceiling_mhz : highest;
}

std::int64_t RankBudget::valid_until_ns() const {
  return static_cast<std::int64_t>(1e9 * (answered_s_ + budget_->lease_s));
}

}  // namespace perseus::client
