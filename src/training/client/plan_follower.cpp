#include "training/client/plan_follower.h"

#include <algorithm>
#include <utility>

namespace perseus::client {
namespace {

void free_list(ClockPlan* plan) {
  while (plan != nullptr) delete std::exchange(plan, plan->next_retired);
}

}  // namespace

PlanFollower::~PlanFollower() {
  delete mailbox_.load();
  free_list(retired_.load());
}

void PlanFollower::put(std::unique_ptr<ClockPlan> plan) {
  plan->ran.resize(plan->clocks.size());  // here, since the training thread allocates nothing
  delete mailbox_.exchange(plan.release(), std::memory_order_acq_rel);
  free_list(retired_.exchange(nullptr, std::memory_order_acq_rel));
}

/// The training thread frees nothing: it returns plans that it no longer needs.
void PlanFollower::retire(std::unique_ptr<ClockPlan> plan) {
  if (!plan) return;
  ClockPlan* const old = plan.release();
  old->next_retired = retired_.load(std::memory_order_relaxed);
  while (!retired_.compare_exchange_weak(old->next_retired, old, std::memory_order_acq_rel)) {}
}

void PlanFollower::fetch() {
  if (mailbox_.load(std::memory_order_relaxed) == nullptr) return;
  retire(std::exchange(next_, std::unique_ptr<ClockPlan>(mailbox_.exchange(nullptr, std::memory_order_acq_rel))));
}

void PlanFollower::install() {
  plan_ = std::move(next_);
  clocks_ = plan_->clocks.data();
  num_clocks_ = plan_->clocks.size();
  version_.store(plan_->version, std::memory_order_relaxed);
  fits_ = true;
  expired_ = false;
  steps_ = 0;
  misfit_.store(0, std::memory_order_release);
}

void PlanFollower::begin_step(std::int64_t iteration) {
  fetch();
  if (is_due(iteration)) {
    retire(std::move(plan_));
    install();
  }
  expired_ = plan_ != nullptr && plan_->then_maximum && steps_ >= plan_->iterations;
  position_ = 0;
  asked_ = begun_any_ = reordered_ = false;
  fits_so_far_ = true;
  fitted_late_ = false;
}

void PlanFollower::pass(model::Instruction instruction, int microbatch, int chunk) {
  if (num_clocks_ == 0 || model::is_constant_time(instruction)) return;
  const std::size_t at = find(instruction, microbatch, chunk);
  if (at == kNowhere) misfits(static_cast<int>(instruction));
  take(at);
}

int PlanFollower::clock_of(model::Instruction instruction, int microbatch, int chunk, std::size_t place) const {
  if (!ruling()) return maximum();
  if (place < num_clocks_ && is(clocks_[place], instruction, microbatch, chunk)) return clocks_[place].clock_mhz;
  for (std::size_t at = 0; at < num_clocks_; ++at) {
    if (is(clocks_[at], instruction, microbatch, chunk)) return clocks_[at].clock_mhz;
  }
  return maximum();
}

std::size_t PlanFollower::find_elsewhere(model::Instruction instruction, int microbatch, int chunk) const {
  for (std::size_t at = position_; at < num_clocks_; ++at) {
    const PlannedClock& planned = clocks_[at];
    const bool ran = reordered_ && plan_->ran[at];
    if (!ran && planned.microbatch >= 0 && is(planned, instruction, microbatch, chunk)) return at;
  }
  return kNowhere;
}

void PlanFollower::take_elsewhere(std::size_t at) {
  if (!std::exchange(reordered_, true)) {
    for (std::size_t before = 0; before < num_clocks_; ++before) plan_->ran[before] = before < position_;
  }
  plan_->ran[at] = true;
  while (position_ < num_clocks_ && plan_->ran[position_]) ++position_;
}

int PlanFollower::whole_step_clock() const {
  int highest = 0;
  for (std::size_t at = 0; at < num_clocks_; ++at) highest = std::max(highest, clocks_[at].clock_mhz);
  return limited() ? std::min(highest, maximum()) : highest;
}

int PlanFollower::first_clock_of(std::int64_t iteration) const {
  const bool changes = is_due(iteration);
  const ClockPlan* const coming = changes ? next_.get() : plan_.get();
  const bool ends = plan_ != nullptr && plan_->then_maximum && steps_ >= plan_->iterations;
  const bool rules = coming != nullptr && (changes || (fits_ && !ends)) && !held_.load(std::memory_order_relaxed);
  if (!rules || coming->clocks.empty()) return coming == nullptr ? fallback() : maximum();
  if (whole_step() && !changes) return whole_step_clock();
  return coming->clocks.front().clock_mhz;
}

void PlanFollower::end_step() {
  if (plan_ == nullptr || plan_->clocks.empty()) return;
  ++steps_;
  if (asked_ && !begun_any_) take(asked_at_);
  asked_ = false;
  const bool nothing_ran = position_ == 0 && !begun_any_ && fits_so_far_;
  whole_step_.store(nothing_ran, std::memory_order_relaxed);
  if (nothing_ran) return;
  if (position_ != num_clocks_) misfits(-1);
  if (fits_so_far_ && !fits_) {
    fits_ = fitted_late_ = true;
    misfit_.store(0, std::memory_order_release);
  }
}

void PlanFollower::misfits(int instruction) {
  fits_so_far_ = false;
  if (!fits_) return;
  fits_ = false;
  misfit_position_.store(static_cast<int>(position_), std::memory_order_relaxed);
  misfit_instruction_.store(instruction, std::memory_order_relaxed);
  misfit_.store(plan_->version, std::memory_order_release);
}

}  // namespace perseus::client
