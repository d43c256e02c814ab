#include "simulation/site_emulator/running_job.h"

#include <algorithm>
#include <cmath>

namespace perseus::site_emulator {

RunningJob::RunningJob(JobKind& kind, int way, double part_over) : kind_(&kind), plans_{{way, {}}} {
  run_iteration();
  // A job at rate 0 waits from the beginning on.
  const bool runs = std::isfinite(length_s_);
  start_s_ = runs ? -part_over * length_s_ : -makespan_s_;
  iterations_ = runs ? -part_over : -1;
  drawn_j_ = -energy_->at_s(-start_s_);
}

/// Computes the iteration under way from its plans.
void RunningJob::run_iteration() {
  const int last = plans_.back().way;
  if (plans_.size() == 1) {
    energy_ = kind_->steady(last);
    const double pause_s = kind_->pause_s(last);
    makespan_s_ = energy_->length_s() - (std::isinf(pause_s) ? 0 : pause_s);
    length_s_ = makespan_s_ + pause_s;
    return;
  }
  std::vector<PlanFrom> plans;
  for (const Granted& granted : plans_) {
    plans.push_back({&kind_->plan(granted.way), granted.from_s});
    for (double& from_s : plans.back().from_s) from_s -= start_s_;
  }
  const SwitchedIteration run = kind_->runner().run(plans);
  makespan_s_ = run.makespan.value();
  length_s_ = makespan_s_ + kind_->pause_s(last);
  all_follow_s_ = start_s_ + run.all_follow_s;
  const Seconds length(std::isinf(length_s_) ? makespan_s_ : length_s_);
  energy_ = std::make_shared<const EnergyOverTime>(run.power, kind_->waiting(), length);
}

/// When the iteration ends: a raise shortens its pause to that of the new way.
double RunningJob::end_s() const {
  const double end = start_s_ + length_s_;
  if (!raise_ || length_s_ <= makespan_s_) return end;
  return std::min(end, std::max(start_s_ + makespan_s_ + kind_->pause_s(raise_->way), raise_->from_s));
}

void RunningJob::begin_next() {
  if (raise_ && raise_->from_s <= start_s_) {
    plans_.assign(1, {raise_->way, {}});
    raise_.reset();
    return run_iteration();
  }
  if (plans_.size() == 1) return;
  std::size_t had = plans_.size() - 1;
  const auto all_have = [&](const Granted& granted) {
    return std::ranges::all_of(granted.from_s, [&](double from_s) { return from_s <= start_s_; });
  };
  while (had > 0 && !all_have(plans_[had])) --had;
  plans_.erase(plans_.begin(), plans_.begin() + static_cast<std::ptrdiff_t>(had));
  plans_.front().from_s.clear();
  run_iteration();
}

void RunningJob::advance_to(Seconds time, const Sink& sink) {
  for (double end = end_s(); end <= time.value(); end = end_s()) {
    long times = 1;
    const bool cut = end < start_s_ + length_s_;
    if (plans_.size() == 1 && !cut) {
      const double until_s = raise_ ? std::min(time.value(), raise_->from_s) : time.value();
      times = std::max(1L, static_cast<long>(std::floor((until_s - start_s_) / length_s_)));
    }
    sink({energy_.get(), start_s_, end - start_s_, times, plans_.size() == 1 && !cut});
    drawn_j_ += static_cast<double>(times) * energy_->at_s(end - start_s_);
    iterations_ += static_cast<double>(times);
    start_s_ = times == 1 ? end : start_s_ + static_cast<double>(times) * length_s_;
    begin_next();
  }
}

void RunningJob::finish(const Sink& sink) const { sink({energy_.get(), start_s_, length_s_, 1}); }

Joules RunningJob::drawn(Seconds now) const { return Joules(drawn_j_ + energy_->at_s(now.value() - start_s_)); }

Seconds RunningJob::fall_to(int way, const std::vector<double>& from_s) {
  raise_.reset();
  plans_.push_back({way, from_s});
  run_iteration();
  // A pause does not end before the grant that changes it.
  length_s_ = std::max(length_s_, *std::ranges::min_element(from_s) - start_s_);
  return Seconds(std::max(all_follow_s_, *std::ranges::max_element(from_s)));
}

void RunningJob::raise_to(int way, Seconds from) { raise_ = Raise{way, from.value()}; }

double RunningJob::work_s(Seconds now) const {
  const double part = std::isinf(length_s_) ? std::min(1.0, (now.value() - start_s_) / makespan_s_)
                                            : (now.value() - start_s_) / length_s_;
  return (iterations_ + part) * kind_->full_speed().value();
}

}  // namespace perseus::site_emulator
