#include "training/client/shape_guards.h"

#include <algorithm>

namespace perseus::client {

/// The plan as it is for steps of that shape.
void ShapeGuards::tell(const OfShape& one) const {
  ClockPlan plan = plan_;
  if (one.microbatches != 0 && plan_.microbatches != 0 && one.microbatches != plan_.microbatches) {
    const auto other = std::ranges::find(plan_.others, one.microbatches, &ShapeClocks::microbatches);
    const bool known = other != plan_.others.end();
    if (!known) plan.kind = ClockPlan::Kind::maximum_clock;
    plan.iteration_time_s = known ? other->iteration_time_s : 0;
    plan.maximum_clock_time_s = known ? other->maximum_clock_time_s : 0;
  }
  one.guard->arrives(plan);
}

PlanGuard& ShapeGuards::of(int microbatches) {
  const auto found = std::ranges::find(guards_, microbatches, &OfShape::microbatches);
  if (found != guards_.end()) {
    guards_.splice(guards_.begin(), guards_, found);
  } else {
    guards_.push_front({microbatches, std::make_unique<PlanGuard>(tolerance_, most_slowdown_, losses_)});
    if (judges_) tell(guards_.front());
    if (guards_.size() > kMost) guards_.pop_back();
  }
  return *guards_.front().guard;
}

void ShapeGuards::arrives(const ClockPlan& plan) {
  const std::lock_guard lock(mutex_);
  judges_ = true;
  plan_ = plan;
  for (const OfShape& one : guards_) tell(one);
}

void ShapeGuards::rest() {
  const std::lock_guard lock(mutex_);
  judges_ = false;
  for (const OfShape& one : guards_) one.guard->rest();
}

void ShapeGuards::take(const GuardedIteration& iteration) {
  const std::lock_guard lock(mutex_);
  of(iteration.microbatches).take(iteration);
}

std::optional<std::vector<int>> ShapeGuards::allowed() const {
  const std::lock_guard lock(mutex_);
  if (!judges_ || tolerance_ < 0) return std::nullopt;
  std::vector<int> shapes;
  for (const OfShape& one : guards_) {
    if (!one.guard->holds()) shapes.push_back(one.microbatches);
  }
  return shapes;
}

bool ShapeGuards::paused() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(guards_, [](const OfShape& one) { return one.guard->paused(); });
}

std::optional<DroppedPlan> ShapeGuards::take_dropped() {
  const std::lock_guard lock(mutex_);
  for (const OfShape& one : guards_) {
    if (auto dropped = one.guard->take_dropped()) {
      dropped->microbatches = one.microbatches;
      return dropped;
    }
  }
  return std::nullopt;
}

std::optional<std::string> ShapeGuards::take_remark() {
  const std::lock_guard lock(mutex_);
  for (const OfShape& one : guards_) {
    if (auto remark = one.guard->take_remark()) return remark;
  }
  return std::nullopt;
}

}  // namespace perseus::client
