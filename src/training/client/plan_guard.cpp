#include "training/client/plan_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/median.h"

namespace perseus::client {
namespace {

constexpr std::size_t kKept = 32, kFew = 5, kBaseline = 3;
constexpr double kAbsurd = 1.5;                              ///< times the reference
constexpr double kStrike = 1.3;                              ///< times the limit
constexpr double kWindowBound = 1.3;                         ///< times the reference
constexpr double kStandardErrors = 4;                        ///< by which a median must exceed its limit
constexpr int kStrikes = 2;                                  ///< in a row
constexpr std::int64_t kLeastPause = 20, kMostPause = 5000;  ///< iterations between trials

/// Standard deviation from the median absolute deviation; larger where there are few values.
double spread(const std::vector<double>& values) {
  const double center = median(values);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - center));
  return kStddevPerMedianDistance * (1 + 4 / static_cast<double>(values.size())) * median(std::move(distances));
}

/// Of the difference of both medians. Iterations vary equally at every clock.
double standard_error(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double median_over_mean = 1.2533;
  return median_over_mean * std::max(spread(a), spread(b)) *
         std::sqrt(1 / static_cast<double>(a.size()) + 1 / static_cast<double>(b.size()));
}

}  // namespace

GuardedIteration guarded_iteration(const Step& step, int highest_mhz) {
  const auto at_maximum = [&](const RecordedComputation& computation) {
    // A clock that was not requested is the driver's own choice.
    return model::is_constant_time(computation.instruction) || !step.controlled || computation.clock == 0 ||
           computation.clock == highest_mhz;
  };
  const bool maximum_clock = std::all_of(
      step.computations.begin(), step.computations.begin() + static_cast<std::ptrdiff_t>(step.count), at_maximum);
  return {step.plan_version, step.followed, maximum_clock, 0};
}

void PlanGuard::Times::add(double time_s) {
  if (times_.size() == kKept) times_.pop_front();
  times_.push_back(time_s);
}

std::vector<double> PlanGuard::Times::last(std::size_t count) const {
  return {times_.end() - static_cast<std::ptrdiff_t>(std::min(count, times_.size())), times_.end()};
}

bool PlanGuard::arrives(const ClockPlan& plan) {
  const std::lock_guard lock(mutex_);
  if (tolerance_ < 0) return false;
  const Judged judged{plan.version, plan.kind, plan.iteration_time_s, plan.maximum_clock_time_s,
                      !plan.slower_because.empty()};
  // The same version comes again after the server was unreachable: the decision about it still holds.
  if (plan.version != (next_ ? next_->version : plan_.version)) {
    next_ = judged;
    next_holds_ = judged.kind != ClockPlan::Kind::maximum_clock && (reference_.size() < kBaseline || refuses(judged));
  }
  return next_holds_ || phase_ == Phase::baseline || phase_ == Phase::trial || phase_ == Phase::dropped;
}

void PlanGuard::rest() {
  const std::lock_guard lock(mutex_);
  phase_ = Phase::idle;
  plan_ = {};
  next_.reset();
  next_holds_ = false;
}

bool PlanGuard::holds() const {
  const std::lock_guard lock(mutex_);
  return (next_ && next_holds_) || phase_ == Phase::baseline || phase_ == Phase::trial || phase_ == Phase::dropped;
}

std::optional<DroppedPlan> PlanGuard::take_dropped() {
  const std::lock_guard lock(mutex_);
  return std::exchange(dropped_, std::nullopt);
}

std::optional<std::string> PlanGuard::take_remark() {
  const std::lock_guard lock(mutex_);
  return std::exchange(remark_, std::nullopt);
}

/// The first iteration of a plan has run.
void PlanGuard::begin(const Judged& plan) {
  plan_ = plan;
  under_plan_.clear();
  strikes_ = 0;
  followed_ = 0;
  trial_after_ = trial_pause_ = 0;
  settles_ = true;
  if (plan.kind == ClockPlan::Kind::maximum_clock) {
    phase_ = Phase::idle;
  } else if (reference_.size() < kBaseline) {
    phase_ = Phase::baseline;
  } else {
    admit();
  }
}

bool PlanGuard::refuses(const Judged& plan) const {
  if (plan.kind != ClockPlan::Kind::plan || plan.slow_on_purpose || reference_.size() < kBaseline) return false;
  if (plan.maximum_clock_time_s > 0 && plan.promised_s > kAbsurd * plan.maximum_clock_time_s) return true;
  return plan.promised_s > kAbsurd * median(reference_.last(kKept));
}

void PlanGuard::admit() {
  phase_ = Phase::following;
  if (!refuses(plan_)) return;
  const double reference_s = median(reference_.last(kKept));
  drop(plan_.promised_s, reference_s,
       fmt::format("it promises {:.4g} s for an iteration that takes {:.4g} s at the highest clock", plan_.promised_s,
                   reference_s),
       "refused before it ran, since iterations take that long at the highest clock");
}

void PlanGuard::take(const GuardedIteration& iteration) {
  const std::lock_guard lock(mutex_);
  if (tolerance_ < 0 || !(iteration.time_s > 0)) return;
  if (next_ && iteration.plan_version == next_->version) {
    begin(*std::exchange(next_, std::nullopt));
    next_holds_ = false;
  }
  // An iteration that follows a plan is no reference, even if this rank's share of it is at the highest clock: other
  // ranks run slower then.
  const bool of_plan =
      iteration.followed && iteration.plan_version == plan_.version && plan_.kind != ClockPlan::Kind::maximum_clock;
  if (!of_plan && !iteration.maximum_clock) return;
  if (of_plan && phase_ != Phase::following) return;  // recorded before the clock was held
  const bool settling = std::exchange(settles_, false);
  if (!std::exchange(warmed_up_, true)) return;
  if (of_plan) {
    if (!strikes_out(iteration.time_s) && !settling) under_the_plan(iteration.time_s);
  } else if (settling) {
    return;
  } else {
    at_maximum_clock(iteration.time_s);
  }
}

void PlanGuard::at_maximum_clock(double time_s) {
  if (phase_ == Phase::trial) {
    trial_.add(time_s);
    if (trial_.size() >= kFew) decide_trial();
    return;
  }
  reference_.add(time_s);
  if (phase_ == Phase::baseline && reference_.size() >= kBaseline) {
    settles_ = true;
    admit();
  }
}

double PlanGuard::allowed_s(double reference_s) const {
  if (plan_.promised_s <= 0) return kAbsurd * reference_s;
  if (plan_.maximum_clock_time_s <= 0) return std::max(reference_s, plan_.promised_s);
  return reference_s * std::max(1.0, plan_.promised_s / plan_.maximum_clock_time_s);
}

double PlanGuard::excess_s(const std::vector<double>& times, const std::vector<double>& reference) const {
  return median(times) - (1 + tolerance_) * allowed_s(median(reference));
}

bool PlanGuard::too_slow(const std::vector<double>& times, const std::vector<double>& reference) const {
  return excess_s(times, reference) > kStandardErrors * standard_error(times, reference);
}

/// True if two iterations in a row were far too slow.
bool PlanGuard::strikes_out(double time_s) {
  const double reference_s = median(reference_.last(kKept));
  const bool window = plan_.kind == ClockPlan::Kind::profiling_window;
  const double limit_s = window ? kWindowBound * reference_s : kStrike * (1 + tolerance_) * allowed_s(reference_s);
  strikes_ = time_s > limit_s ? strikes_ + 1 : 0;
  if (strikes_ < kStrikes) return false;
  if (window) {
    drop(limit_s, time_s,
         fmt::format("an iteration of the profiling window takes {:.4g} s, at the highest clock {:.4g} s", time_s,
                     reference_s),
         fmt::format("in a profiling window; the highest clock takes {:.4g} s", reference_s));
  } else {
    start_trial({time_s});
  }
  return true;
}

void PlanGuard::under_the_plan(double time_s) {
  if (plan_.kind == ClockPlan::Kind::profiling_window) return;
  const std::vector<double> reference = reference_.last(kKept);
  const double reference_s = median(reference);
  ++followed_;
  under_plan_.add(time_s);
  if (under_plan_.size() < kFew || followed_ < trial_after_) return;
  for (const std::size_t count : {kFew, kKept}) {
    const std::vector<double> times = under_plan_.last(count);
    if (too_slow(times, reference)) return start_trial(times);
  }
  // Training has become faster than it was at the highest clock: the reference is out of date.
  if (under_plan_.size() == kKept && median(under_plan_.last(kKept)) < reference_s) {
    reference_.clear();
    for (const double faster_s : under_plan_.last(kKept)) reference_.add(faster_s);
  }
}

void PlanGuard::start_trial(const std::vector<double>& slow) {
  slow_ = slow;
  trial_.clear();
  settles_ = true;
  phase_ = Phase::trial;
  const double reference_s = median(reference_.last(kKept));
  remark_ = fmt::format(
      "plan {} is on trial: iterations take {:.4g} s, {:.4g} s was promised; the next {} or more run at the highest "
      "clock",
      plan_.version, median(slow), allowed_s(reference_s), kFew);
}

void PlanGuard::decide_trial() {
  const std::vector<double> now = trial_.last(kKept);
  const bool slower = excess_s(slow_, now) > 0;
  if (slower && !too_slow(slow_, now) && now.size() < kKept) return;  // not certain yet
  if (slower) {
    const double now_s = median(now), measured_s = median(slow_);
    drop(allowed_s(now_s), measured_s,
         fmt::format("iterations take {:.4g} s; it promised {:.4g} s, and the highest clock takes {:.4g} s", measured_s,
                     allowed_s(now_s), now_s),
         fmt::format("the highest clock takes {:.4g} s", now_s));
    reference_ = trial_;
    return;
  }
  remark_ = fmt::format("plan {} continues: iterations take {:.4g} s under it and {:.4g} s at the highest clock",
                        plan_.version, median(slow_), median(now));
  reference_ = trial_;
  under_plan_.clear();
  strikes_ = 0;
  trial_pause_ = std::clamp(2 * trial_pause_, kLeastPause, kMostPause);
  trial_after_ = followed_ + trial_pause_;
  settles_ = true;
  phase_ = Phase::following;
}

void PlanGuard::drop(double promised_s, double measured_s, std::string text, std::string reason) {
  phase_ = Phase::dropped;
  settles_ = true;
  dropped_ = DroppedPlan{plan_.version, promised_s, measured_s, std::move(text), std::move(reason)};
}

}  // namespace perseus::client
