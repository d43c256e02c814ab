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
  std::size_t most = plan->clocks.size();
  for (const ShapeClocks& other : plan->others) most = std::max(most, other.clocks.size());
  plan->ran.resize(most);  // here, since the training thread allocates nothing
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
  other_ = nullptr;
  version_.store(plan_->version, std::memory_order_relaxed);
  expired_ = false;
  steps_ = 0;
  misfit_.store(0, std::memory_order_release);
}

bool PlanFollower::is_first(const ClockPlan& plan, int microbatches) {
  return microbatches == 0 || plan.microbatches == 0 || microbatches == plan.microbatches;
}

/// Takes the clocks for a step of that shape. 0: not known: the plan's first ones.
void PlanFollower::select(int microbatches) {
  const bool first = is_first(*plan_, microbatches);
  other_ = first ? nullptr : other_of(*plan_, microbatches);
  foreign_ = !first && other_ == nullptr;
  const std::vector<PlannedClock>& clocks = other_ == nullptr ? plan_->clocks : other_->clocks;
  clocks_ = clocks.data();
  num_clocks_ = foreign_ ? 0 : clocks.size();
  fits_ = !foreign_ && (other_ == nullptr ? plan_->fits : other_->fits);
  shape_held_.store(!is_allowed(microbatches), std::memory_order_relaxed);
}

ShapeClocks* PlanFollower::other_of(ClockPlan& plan, int microbatches) {
  const auto found = std::ranges::find(plan.others, microbatches, &ShapeClocks::microbatches);
  return found == plan.others.end() ? nullptr : &*found;
}

bool PlanFollower::is_allowed(int microbatches) const {
  if (all_allowed_.load(std::memory_order_relaxed)) return true;
  for (const std::atomic<int>& allowed : allowed_) {
    const int one = allowed.load(std::memory_order_relaxed);
    if (one == 0 || one == microbatches + 1) return one != 0;
  }
  return false;
}

void PlanFollower::allow_shapes(const std::optional<std::vector<int>>& shapes) {
  for (std::size_t i = 0; i < kMostShapes; ++i) {
    const int one = shapes && i < shapes->size() ? (*shapes)[i] + 1 : 0;
    allowed_[i].store(one, std::memory_order_relaxed);
  }
  all_allowed_.store(!shapes, std::memory_order_relaxed);
}

void PlanFollower::begin_step(std::int64_t iteration, int microbatches) {
  fetch();
  told_ = microbatches;
  if (is_due(iteration)) {
    retire(std::move(plan_));
    install();
  }
  if (plan_ != nullptr) select(told_ != 0 ? told_ : expected_);
  first_misfit_ = misfit_ran_ = -1;
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
  ClockPlan* const coming = changes ? next_.get() : plan_.get();
  if (coming == nullptr) return fallback();
  const bool first = is_first(*coming, expected_);
  const ShapeClocks* const other = first ? nullptr : other_of(*coming, expected_);
  const bool fits = changes || (other == nullptr ? coming->fits : other->fits);
  const bool ends = !changes && coming->then_maximum && steps_ >= coming->iterations;
  const bool rules =
      (first || other != nullptr) && fits && !ends && is_allowed(expected_) && !held_.load(std::memory_order_relaxed);
  const std::vector<PlannedClock>& clocks = other == nullptr ? coming->clocks : other->clocks;
  if (!rules || clocks.empty()) return maximum();
  if (whole_step() && !changes) return whole_step_clock();
  return clocks.front().clock_mhz;
}

void PlanFollower::end_step(int microbatches) {
  const int assumed = told_ != 0 ? told_ : expected_;
  // A step that the program gives no shape has that of the computations that ran.
  const int had = told_ != 0 ? told_ : microbatches != 0 ? microbatches : expected_;
  expected_ = had;
  if (plan_ == nullptr || plan_->clocks.empty()) return;
  const int planned = other_ != nullptr ? other_->microbatches : plan_->microbatches;
  const bool other_shape = !foreign_ && had != assumed && had != 0 && planned != 0 && had != planned;
  if (foreign_ || other_shape) {
    foreign_ = true;
    asked_ = false;
    whole_step_.store(false, std::memory_order_relaxed);
    return;
  }
  if (other_ == nullptr) ++steps_;
  if (asked_ && !begun_any_) take(asked_at_);
  asked_ = false;
  const bool nothing_ran = position_ == 0 && !begun_any_ && fits_so_far_;
  whole_step_.store(nothing_ran, std::memory_order_relaxed);
  if (nothing_ran) return;
  if (position_ != num_clocks_) misfits(-1);
  if (!fits_so_far_) {
    show_misfit();
  } else if (!fits_) {
    fits_ = fitted_late_ = true;
    misfit_.store(0, std::memory_order_release);
  }
  (other_ == nullptr ? plan_->fits : other_->fits) = fits_;
}

void PlanFollower::forget_step() {
  asked_ = false;
  const bool fitted = plan_ != nullptr && (other_ == nullptr ? plan_->fits : other_->fits);
  if (fitted && !fits_so_far_) misfit_.store(0, std::memory_order_release);
}

void PlanFollower::misfits(int instruction) {
  if (!fits_so_far_) return;
  fits_so_far_ = false;
  first_misfit_ = static_cast<int>(position_);
  misfit_ran_ = instruction;
  // Otherwise the step may turn out to have another shape.
  if (told_ != 0 || plan_->microbatches == 0) show_misfit();
}

void PlanFollower::show_misfit() {
  if (!std::exchange(fits_, false)) return;
  misfit_position_.store(first_misfit_, std::memory_order_relaxed);
  misfit_instruction_.store(misfit_ran_, std::memory_order_relaxed);
  misfit_.store(plan_->version, std::memory_order_release);
}

}  // namespace perseus::client
