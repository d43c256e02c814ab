#include "training/client/plan_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace perseus::client {
namespace {

constexpr std::size_t kKept = 32, kFew = 5, kBaseline = 3;
constexpr std::size_t kMostComing = 16;
constexpr double kStrike = 1.3;                              ///< times the limit
constexpr double kWindowBound = 1.3;                         ///< times the reference
constexpr double kStandardErrors = 4;                        ///< by which a median must exceed its limit
constexpr int kStrikes = 2;                                  ///< in a row
constexpr std::int64_t kLeastPause = 20, kMostPause = 5000;  ///< iterations between trials
constexpr double kFirstPause_s = 60;                         ///< of a dropped plan
constexpr int kMostDoublings = 6;
constexpr int kSlowVersions = 2;                              ///< in a row, before every version waits
constexpr double kTrusted_s = 600;                            ///< without a slow iteration
constexpr std::int64_t kSeveral = -1;                         ///< versions
constexpr double kLossRate = 0.005, kWindowLossRate = 0.001;  ///< of the iterations that plans, and windows, may cost
constexpr double kMostLost = 10;                              ///< iterations beyond that

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

double seconds(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? 1e-9 * static_cast<double>(to_ns - from_ns) : 0;
}

/// Time in computations that have a clock; overlapping ones count once.
double computed(const Step& step) {
  if (step.count == 0) return seconds(step.begin_mark, step.end_mark);  // captured as a graph
  double computed_s = 0;
  std::uint64_t from = 0;
  for (std::size_t i = 0; i < step.count; ++i) {
    const RecordedComputation& one = step.computations[i];
    if (model::is_constant_time(one.instruction)) continue;
    computed_s += seconds(std::max(from, one.begin), one.end);
    from = std::max(from, one.end);
  }
  return computed_s;
}

}  // namespace

GuardedIteration guarded_iteration(const Step& step, int highest_mhz) {
  // A clock that was not requested is the driver's own choice.
  const auto is_highest = [&](int clock) { return !step.controlled || clock == 0 || clock == highest_mhz; };
  const bool maximum_clock =
      is_highest(step.graph_clock) &&
      std::all_of(step.computations.begin(), step.computations.begin() + static_cast<std::ptrdiff_t>(step.count),
                  [&](const RecordedComputation& computation) {
                    return model::is_constant_time(computation.instruction) || is_highest(computation.clock);
                  });
  return {step.plan_version, step.followed, maximum_clock, 0, computed(step), false, step.microbatches};
}

double PlanGuard::Sample::device_time(double usual_idle_s) const {
  if (computed_s <= 0) return time_s;
  return computed_s + std::clamp(time_s - computed_s, 0.0, usual_idle_s);
}

void PlanGuard::Samples::add(const Sample& sample) {
  if (samples_.size() == kKept) samples_.pop_front();
  samples_.push_back(sample);
  known_.reset();
}

std::vector<double> PlanGuard::Samples::last_times(std::size_t count) const {
  std::vector<double> times;
  for (std::size_t i = samples_.size() - std::min(count, samples_.size()); i < samples_.size(); ++i) {
    times.push_back(samples_[i].time_s);
  }
  return times;
}

bool PlanGuard::Samples::one_version(std::size_t count) const {
  const std::size_t last = std::min(count, samples_.size());
  return std::all_of(samples_.end() - static_cast<std::ptrdiff_t>(last), samples_.end(),
                     [&](const Sample& sample) { return sample.version == samples_.back().version; });
}

const PlanGuard::Samples::Known& PlanGuard::Samples::known() const {
  if (known_) return *known_;
  std::vector<double> idle_s, times_s;
  for (const Sample& sample : samples_) idle_s.push_back(std::max(sample.time_s - sample.computed_s, 0.0));
  const double usual_idle_s = median(std::move(idle_s));
  for (const Sample& sample : samples_) times_s.push_back(sample.device_time(usual_idle_s));
  std::sort(times_s.begin(), times_s.end());
  const std::size_t at = (95 * (times_s.size() - 1) + 50) / 100;
  known_ = Known{median(last_times(kKept)), usual_idle_s, times_s[at]};
  return *known_;
}

bool PlanGuard::arrives(const ClockPlan& plan) {
  if (tolerance_ < 0) return false;
  const Judged judged{plan.version, plan.kind, plan.iteration_time_s, plan.maximum_clock_time_s,
                      !plan.slower_because.empty()};
  // The same version comes again after the server was unreachable: the decision about it still holds.
  if (plan.version != (coming_.empty() ? plan_.version : coming_.back().version)) {
    if (coming_.size() == kMostComing) coming_.pop_front();
    coming_.push_back(judged);
  }
  return holds();
}

void PlanGuard::rest() {
  resting_ = true;
  phase_ = Phase::following;
  plan_ = {};
  coming_.clear();
}

bool PlanGuard::holds() const {
  const auto may_run = [&](const Judged& plan) {
    return plan.kind == ClockPlan::Kind::maximum_clock ||
           (reference_.size() >= kBaseline && !refuses(plan) && !waits(plan));
  };
  return (!coming_.empty() && !may_run(coming_.back())) || phase_ == Phase::baseline || phase_ == Phase::trial ||
         phase_ == Phase::paused;
}

/// The first iteration of a plan has run. What was seen of the versions before it stays: a plan that is replaced again
/// and again must not escape judgment.
void PlanGuard::begin(const Judged& plan) {
  plan_ = plan;
  resting_ = false;
  settles_ = true;
  if (phase_ == Phase::second_look && plan_.is_window()) phase_ = Phase::following;
  if (plan.kind == ClockPlan::Kind::maximum_clock) {
    if (phase_ == Phase::baseline) phase_ = Phase::following;
  } else if (reference_.size() < kBaseline) {
    phase_ = Phase::baseline;
  } else if (phase_ == Phase::following || phase_ == Phase::paused) {
    try_plan();
  }
}

void PlanGuard::try_plan() {
  // A plan that is refused costs nothing: said at once, though not of each version of a server that sends many.
  const bool says_no = pause_of(plan_).drops < kSlowVersions && refuses(plan_);
  if (says_no || !waits(plan_)) return resume();
  phase_ = Phase::paused;
}

/// By rules 5 and 6, for another version than the one that was dropped.
bool PlanGuard::waits(const Judged& plan) const {
  const Pause& pause = pause_of(plan);
  return (pause.drops >= kSlowVersions && trained_s_ < pause.until_s) || costs_too_much(plan);
}

bool PlanGuard::refuses(const Judged& plan) const {
  if (plan.kind != ClockPlan::Kind::plan || reference_.size() < kBaseline) return false;
  const double most = most_promised(plan);
  if (plan.maximum_clock_time_s > 0 && plan.promised_s > most * plan.maximum_clock_time_s) return true;
  return plan.promised_s > most * reference_.median_time();
}

/// The plan may run, unless it is refused.
void PlanGuard::resume() {
  if (phase_ != Phase::following) {
    under_plan_.clear();
    strikes_ = 0;
    followed_ = trial_after_ = 0;
    slow_at_s_ = trained_s_;
  }
  trial_pause_ = 0;
  phase_ = Phase::following;
  settles_ = true;
  if (!refuses(plan_)) return;
  const double reference_s = reference_.median_time();
  const std::string allowed =
      plan_.slow_on_purpose ? fmt::format("; allowed: {} times that (PERSEUS_MOST_SLOWDOWN)", most_slowdown_) : "";
  drop(plan_pause_, plan_.promised_s, reference_s,
       fmt::format("it promises {:.4g} s for an iteration that takes {:.4g} s at the highest clock{}", plan_.promised_s,
                   reference_s, allowed),
       "refused before it ran, since iterations take that long at the highest clock");
  dropped_->not_allowed = plan_.slow_on_purpose;
}

/// Rule 6.
bool PlanGuard::costs_too_much(const Judged& plan) const { return lost_by(plan).iterations > kMostLost; }

void PlanGuard::take(const GuardedIteration& iteration) {
  if (tolerance_ < 0 || !(iteration.time_s > 0)) return;
  trained_s_ += iteration.time_s;
  losses_->plans.iterations = std::max(losses_->plans.iterations - kLossRate, 0.0);
  losses_->windows.iterations = std::max(losses_->windows.iterations - kWindowLossRate, 0.0);
  const auto begun =
      std::ranges::find_if(coming_, [&](const Judged& plan) { return plan.version == iteration.plan_version; });
  if (begun != coming_.end()) {
    const Judged plan = *begun;
    coming_.erase(coming_.begin(), begun + 1);
    begin(plan);
  }
  if (resting_) return;
  if (phase_ == Phase::paused && trained_s_ >= pause_of(plan_).until_s && !costs_too_much(plan_)) resume();
  // An iteration that follows a plan is no reference, even if this rank's share of it is at the highest clock: other
  // ranks run slower then.
  const bool follows =
      iteration.followed && iteration.plan_version == plan_.version && plan_.kind != ClockPlan::Kind::maximum_clock;
  if (iteration.other_clock) return;
  const Sample sample{iteration.time_s, iteration.computed_s, iteration.plan_version};
  const bool of_plan = follows || !iteration.maximum_clock;
  if (of_plan && reference_.size() >= kBaseline) add_cost(sample);
  if (of_plan && phase_ != Phase::following && phase_ != Phase::second_look) return;  // before the clock was held
  const bool settling = std::exchange(settles_, false) && !settled_;
  settled_ = settling;
  if (!std::exchange(warmed_up_, true)) return;
  if (!of_plan) {
    if (!settling) at_maximum_clock(sample);
    return;
  }
  if (reference_.size() < kBaseline || strikes_out(sample) || drops_for_cost(sample) || settling) return;
  if (phase_ == Phase::second_look) {
    look_again(sample);
  } else {
    under_the_plan(sample);
  }
}

void PlanGuard::at_maximum_clock(const Sample& sample) {
  if (phase_ == Phase::trial) {
    trial_.add(sample);
    if (trial_.size() >= kFew) decide_trial();
    return;
  }
  reference_.add(sample);
  if (phase_ == Phase::baseline && reference_.size() >= kBaseline) try_plan();
}

double PlanGuard::slowdown() const {
  if (plan_.kind != ClockPlan::Kind::plan || !plan_.slow_on_purpose) return 1;
  if (plan_.promised_s <= 0) return std::min(kMostWithoutReason, most_slowdown_);
  const double at_maximum_s =
      plan_.maximum_clock_time_s > 0 ? plan_.maximum_clock_time_s : std::max(reference_.median_time(), 1e-9);
  return std::clamp(plan_.promised_s / at_maximum_s, 1.0, most_slowdown_);
}

double PlanGuard::device_time(const Sample& sample) const { return sample.device_time(reference_.usual_idle()); }

double PlanGuard::excess_s(const std::vector<double>& times, const std::vector<double>& reference) const {
  return median(times) - (1 + tolerance_) * median(reference);
}

bool PlanGuard::too_slow(const std::vector<double>& times, const std::vector<double>& reference) const {
  return excess_s(times, reference) > kStandardErrors * standard_error(times, reference);
}

/// Rule 6.
void PlanGuard::add_cost(const Sample& sample) {
  const double limit_s = (1 + tolerance_) * slowdown() * reference_.longest();
  const double cost_s = device_time(sample) - limit_s;
  if (!(cost_s > 0)) return;
  Losses::Account& account = lost_by(plan_);
  if (account.iterations == 0) account.version = sample.version;
  if (account.version != sample.version) account.version = kSeveral;
  account.iterations += cost_s / reference_.median_time();
}

/// True if no plan runs for now.
bool PlanGuard::drops_for_cost(const Sample& sample) {
  if (!costs_too_much(plan_) || phase_ == Phase::second_look) return false;
  if (!plan_.is_window() && lost_by(plan_).version == sample.version) {
    start_trial({sample.time_s / slowdown()}, true);
    return true;
  }
  const double reference_s = reference_.median_time();
  const std::string cost =
      fmt::format("the last plans cost {:.4g} s more than promised", lost_by(plan_).iterations * reference_s);
  drop(pause_of(plan_), slowdown() * reference_s, sample.time_s,
       fmt::format("{}; iterations take {:.4g} s, at the highest clock {:.4g} s", cost, sample.time_s, reference_s),
       fmt::format("{}; the highest clock takes {:.4g} s", cost, reference_s));
  return true;
}

/// True if two iterations in a row were far too slow on the device.
bool PlanGuard::strikes_out(const Sample& sample) {
  const double reference_s = reference_.median_time();
  const double limit_s = plan_.is_window()
                             ? kWindowBound * reference_s
                             : kStrike * (1 + tolerance_) * slowdown() * std::max(reference_s, reference_.longest());
  strikes_ = device_time(sample) > limit_s ? strikes_ + 1 : 0;
  if (strikes_ == 0) return false;
  slow_at_s_ = trained_s_;
  if (phase_ == Phase::second_look) {  // one more is enough
    slow_ = {sample.time_s / slowdown()};
    drop_as_slow();
    return true;
  }
  if (strikes_ < kStrikes) return false;
  if (plan_.is_window()) {
    drop(window_pause_, limit_s, sample.time_s,
         fmt::format("an iteration of the profiling window takes {:.4g} s, at the highest clock {:.4g} s",
                     sample.time_s, reference_s),
         fmt::format("in a profiling window; the highest clock takes {:.4g} s", reference_s));
  } else {
    start_trial({sample.time_s / slowdown()}, lost_by(plan_).version != kSeveral);
  }
  return true;
}

void PlanGuard::under_the_plan(const Sample& sample) {
  if (trained_s_ - slow_at_s_ > kTrusted_s) pause_of(plan_).drops = 0;
  if (plan_.is_window()) return;
  ++followed_;
  under_plan_.add({sample.time_s / slowdown(), sample.computed_s, sample.version});
  if (under_plan_.size() < kFew || followed_ < trial_after_) return;
  const std::vector<double> reference = reference_.last_times(kKept);
  for (const std::size_t count : {kFew, kKept}) {
    std::vector<double> times = under_plan_.last_times(count);
    if (too_slow(times, reference)) return start_trial(std::move(times), under_plan_.one_version(count));
  }
  // Training has become faster than it was at the highest clock: the reference is out of date.
  if (under_plan_.size() == kKept && under_plan_.median_time() < reference_.median_time()) { reference_ = under_plan_; }
}

void PlanGuard::start_trial(std::vector<double> slow, bool one_version) {
  slow_ = std::move(slow);
  slow_version_ = one_version;
  slow_at_s_ = trained_s_;
  trial_.clear();
  settles_ = true;
  phase_ = Phase::trial;
}

void PlanGuard::decide_trial() {
  const std::vector<double> now = trial_.last_times(kKept);
  const bool slower = excess_s(slow_, now) > 0;
  if (slower && !too_slow(slow_, now) && now.size() < kKept) return;  // not certain yet
  reference_ = trial_;
  if (!slower) {
    losses_->plans.iterations = 0;
    return plan_continues();
  }
  if (!slow_version_) return drop_as_slow();
  second_look_.clear();
  strikes_ = 0;
  settles_ = true;
  phase_ = Phase::second_look;
}

/// The plan runs again after a trial that was faster.
void PlanGuard::look_again(const Sample& sample) {
  second_look_.add({sample.time_s / slowdown(), sample.computed_s, sample.version});
  if (second_look_.size() < kFew) return;
  const std::vector<double> now = second_look_.last_times(kKept), reference = reference_.last_times(kKept);
  const bool slower = excess_s(now, reference) > 0;
  if (slower && !too_slow(now, reference) && now.size() < kKept) return;  // not certain yet
  if (slower) {
    slow_ = now;
    return drop_as_slow();
  }
  if (losses_->plans.version == sample.version) losses_->plans.iterations = 0;  // a stall's
  plan_continues();
}

void PlanGuard::plan_continues() {
  remark_ = fmt::format("plan {} continues: iterations took {:.4g} s under it and {:.4g} s at the highest clock{}",
                        plan_.version, slowdown() * median(slow_), reference_.median_time(),
                        phase_ == Phase::second_look
                            ? fmt::format("; now they take {:.4g} s under it", slowdown() * second_look_.median_time())
                            : "");
  under_plan_.clear();
  slow_.clear();
  strikes_ = 0;
  trial_pause_ = std::clamp(2 * trial_pause_, kLeastPause, kMostPause);
  trial_after_ = followed_ + trial_pause_;
  settles_ = true;
  phase_ = Phase::following;
}

void PlanGuard::drop_as_slow() {
  const double now_s = reference_.median_time(), measured_s = median(slow_) * slowdown();
  // Only plans have trials, though a window may have come since.
  drop(plan_pause_, slowdown() * now_s, measured_s,
       fmt::format("iterations take {:.4g} s; it promised {:.4g} s, and the highest clock takes {:.4g} s", measured_s,
                   slowdown() * now_s, now_s),
       fmt::format("the highest clock takes {:.4g} s", now_s));
}

void PlanGuard::drop(Pause& pause, double promised_s, double measured_s, std::string text, std::string reason) {
  const double pause_s = std::ldexp(kFirstPause_s, std::min(pause.drops++, kMostDoublings));
  pause.until_s = trained_s_ + pause_s;
  slow_at_s_ = trained_s_;
  phase_ = Phase::paused;
  settles_ = true;
  slow_.clear();
  dropped_ = DroppedPlan{plan_.version, promised_s, measured_s, std::move(text), std::move(reason), pause_s};
}

}  // namespace perseus::client
