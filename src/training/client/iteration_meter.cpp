#include "training/client/iteration_meter.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/median.h"
#include "training/client/call_cost.h"

namespace perseus::client {
namespace {

constexpr double kEventsInterval_s = 0.1;  ///< between readings of clock and throttling
constexpr double kPowersInterval_s = 1;    ///< between solutions of the model for powers
constexpr double kLimitsInterval_s = 10;   ///< between readings of the power limit
constexpr double kLongFailure_s = 30;      ///< of the counter; then windows end without energies
constexpr double kPatience_s = 3;          ///< wait for an edge after an iteration's end
constexpr double kKnownWithin = 0.05;      ///< standard deviation of an energy that is reported to the server
constexpr double kSureWithin = 0.02;       ///< ... of a corrected time
constexpr double kMixedShare = 0.02;       ///< share of its time at another clock from which a computation is mixed
constexpr double kLateBy_s = 0.002;        ///< beyond the switch latency: a clock that came late, ...
constexpr double kLateShare = 0.9;         ///< ... as is a clock that came when the computation was nearly over
constexpr double kSeenEnough_s = 0.2;      ///< of the time between steps, to know its power
constexpr std::size_t kGapsKept = 15, kFewGaps = 3;
constexpr double kUnusualShare = 0.25;  ///< of a step: beyond the usual time between steps
constexpr int kChunked = 6;             ///< forward .. pure_backward are distinguished by chunk

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

int highest(const std::vector<int>& clocks) { return clocks.empty() ? 1000 : clocks.front(); }
int lowest(const std::vector<int>& clocks) { return clocks.empty() ? 999 : clocks.back(); }

}  // namespace

IterationMeter::IterationMeter(device::Gpu* gpu, bool with_energy, const std::vector<int>& clocks_mhz, int chunks,
                               Complaints& complaints, std::function<double()> clock)
    : gpu_(gpu),
      chunks_(std::clamp(chunks, 1, 16)),
      clocks_known_(!clocks_mhz.empty()),
      highest_mhz_(highest(clocks_mhz)),
      complaints_(complaints),
      clock_(clock ? std::move(clock) : [] { return seconds(host_now_ns()); }),
      meter_(kChunked * chunks_ + model::kNumInstructions - kChunked, lowest(clocks_mhz), highest(clocks_mhz)),
      speeds_(static_cast<std::size_t>(meter_.waiting())),
      habit_(clocks_mhz),
      gives_energy_(gpu != nullptr && with_energy),
      gives_events_(gpu != nullptr) {}

int IterationMeter::kind_of(const RecordedComputation& computation) const {
  const int instruction = static_cast<int>(computation.instruction);
  if (instruction >= kChunked) return kChunked * chunks_ + instruction - kChunked;
  return instruction * chunks_ + std::min<int>(computation.chunk, chunks_ - 1);
}

void IterationMeter::clock_set(double at_s, int clock_mhz) {
  if (!controlled_from_s_) controlled_from_s_ = at_s + switch_latency_s_;
  const int clock = clock_mhz == 0 ? highest_mhz_ : clock_mhz;  // the driver's own choice
  meter_.clock(at_s, clock, switch_latency_s_);
}

/// No controller set the clock in that step: the driver chose it.
void IterationMeter::forget_clocks(const Step& step) {
  if (step.controlled || !controlled_from_s_) return;
  controlled_from_s_.reset();
  meter_.clock(seconds(step.begin_ns), highest_mhz_, 0);
}

/// Clocks that the device showed and that the helper had not set: work at these is no sample of the planned clock.
void IterationMeter::check_clocks(double until_s) {
  const Seconds unsure(1.5 * switch_latency_s_ + 0.003);
  const model::ClockTimeline& clocks = meter_.clocks();
  const auto alike = [this](Megahertz set, Megahertz shown) { return device::runs_at(gpu_->identity(), set, shown); };
  while (!seen_.empty() && seen_.front().at_s < until_s) {
    const SeenClock seen = seen_.front();
    seen_.pop_front();
    if (!controlled_from_s_ || seen.at_s < *controlled_from_s_) continue;
    const Seconds at(seen.at_s);
    const Megahertz set = clocks.at(at - unsure);
    const auto from = clocks.next_after(at - unsure), until = clocks.next_after(at + unsure);
    const auto usual = [&](Megahertz clock) {
      return alike(clock, seen.clock) || habit_.is_usual(clock.value(), seen.clock.value());
    };
    const bool steady = from == until && !seen.throttled && !alike(set, seen.clock);
    const bool expected =
        steady ? habit_.learn(set.value(), seen.clock.value())
               : usual(set) || std::any_of(from, until, [&](const auto& change) { return usual(change.clock); });
    if (!expected) meter_.other_clock(seen.at_s - kEventsInterval_s, seen.at_s + kEventsInterval_s);
    if (const auto remark = habit_.take_remark()) complaints_.say(LogLevel::warning, *remark);
  }
}

IterationMeter::Ran IterationMeter::ran_at(const RecordedComputation& computation, int clock_mhz, double from_s,
                                           double to_s) const {
  Ran ran{kind_of(computation), clock_mhz, {}};
  meter_.clocks().for_each(Seconds(from_s), Seconds(to_s), [&](Megahertz clock, Seconds from, Seconds to) {
    ran.pieces.push_back({clock.value(), (to - from).value()});
  });
  const double took_s = to_s - from_s;
  if (ran.clock_mhz == 0) ran.clock_mhz = meter_.clocks().at(Seconds(to_s)).value();
  double other_s = 0;
  for (const ClockedTime& piece : ran.pieces) other_s += piece.clock_mhz == ran.clock_mhz ? 0 : piece.seconds;
  ran.mixed = !model::is_constant_time(computation.instruction) && other_s > kMixedShare * took_s;
  ran.late = ran.mixed && other_s > std::min(1.5 * switch_latency_s_ + kLateBy_s, kLateShare * took_s);
  return ran;
}

void IterationMeter::take(const Step& step, double now_s) {
  const double begin = seconds(step.begin_ns);
  const double end = seconds(step.end_ns);
  forget_clocks(step);
  check_clocks(end);
  if (!step.train) {
    meter_.unknown(begin, end);
    last_end_s_ = end;
    last_trained_ = false;
    return;
  }
  if (step.iteration != last_iteration_ + 1 && last_end_s_ > 0) meter_.unknown(last_end_s_, begin);
  Pending pending = pending_of(step, now_s);
  if (last_trained_ && step.iteration == last_iteration_ + 1) pending.gap_s = std::max(begin - last_end_s_, 0.0);
  last_iteration_ = step.iteration;
  last_end_s_ = end;
  last_trained_ = true;

  std::vector<WorkSpan> spans = add_computations(step, pending);
  pending.iteration.time_s = pending.last_s - begin;
  // Iterations of a window that did not run at its clocks are no samples.
  pending.wanted = step.window < 0 || (step.clean && step.followed);
  const bool detailed = step.window >= 0 && gives_energy_;
  meter_.step(pending.tag, begin, pending.step_end_s, std::move(spans), detailed);
  if (!step.clean || !step.placed) meter_.unknown(begin, end);
  pending_.push_back(std::move(pending));
}

/// All but the computations.
IterationMeter::Pending IterationMeter::pending_of(const Step& step, double now_s) {
  Pending pending;
  pending.tag = next_tag_++;
  pending.end_s = now_s;
  pending.window_iterations = std::max(step.window_iterations, 1);
  pending.begin_s = seconds(step.begin_ns);
  pending.last_s = pending.step_end_s = seconds(step.end_ns);
  pending.paced_s = step.paced_s;
  pending.clean = step.clean;
  pending.followed = step.followed;
  pending.comparable = step.comparable;
  pending.window_ends = step.window_ends;
  pending.iteration.iteration = step.iteration;
  pending.iteration.plan_version = step.window >= 0 || (step.followed && !step.at_maximum) ? step.plan_version : 0;
  pending.iteration.window = step.window;
  pending.iteration.microbatches = step.microbatches;
  return pending;
}

/// Returns the work of the step, for the energy meter: in order, without overlaps.
std::vector<WorkSpan> IterationMeter::add_computations(const Step& step, Pending& pending) {
  const double begin = pending.begin_s;
  // Converts marks of another time source to the host's clock, aligned at the step's begin.
  const auto on_host = [&](std::uint64_t mark) {
    return begin + static_cast<double>(static_cast<std::int64_t>(mark - step.begin_mark)) * 1e-9;
  };
  double last = begin;
  double from = begin;
  std::vector<WorkSpan> spans;
  for (std::size_t i = 0; i < step.count; ++i) {
    const RecordedComputation& c = step.computations[i];
    const double c_begin = on_host(c.begin);
    const double c_end = c.end == 0 ? c_begin : on_host(c.end);
    if (c.instruction != model::Instruction::all_reduce && c.instruction != model::Instruction::optimizer_step) {
      last = std::max(last, c_end);
    }
    pending.iteration.computations.push_back(
        {c.instruction, std::max(c_end - c_begin, 0.0), -1, c_begin - begin, std::max(c_end, c_begin) - begin});
    pending.ran.push_back(ran_at(c, step.controlled ? c.clock : 0, c_begin, c_end));
    from = std::max(from, c_begin);  // overlapping work counts for the earlier computation
    if (c_end <= from) continue;
    pending.computation_of_span.push_back(i);
    spans.push_back({kind_of(c), from, c_end});
    from = c_end;
  }
  if (step.count > 0) pending.last_s = last;
  pending.step_end_s = std::max(pending.step_end_s, from);
  return spans;
}

double IterationMeter::next_look_s() const {
  if (!gives_energy_) return gives_events_ ? next_events_s_ : 1e300;
  const double next_s = gives_power_ ? std::min(next_energy_s(), check_.next_power_s()) : next_energy_s();
  // A counter that works is read often enough to read the clock with it.
  return gives_events_ && failures_ > 0 ? std::min(next_s, next_events_s_) : next_s;
}

void IterationMeter::look(double now_s) {
  if (gives_energy_ && now_s >= next_energy_s()) look_at_energy(now_s);
  if (gives_energy_ && gives_power_ && now_s >= check_.next_power_s()) look_at_power(now_s);
  if (gives_events_ && now_s >= next_events_s_) look_at_clock(now_s);
}

void IterationMeter::look_at_energy(double now_s) {
  const auto energy = gpu_->energy();
  if (!energy) {
    const device::DeviceFault fault = energy.error().fault;
    const bool again =
        (fault == device::DeviceFault::busy || failures_ < 3) && fault != device::DeviceFault::not_supported;
    if (++failures_ == 1) failing_since_s_ = now_s;
    fails_long_ = now_s - failing_since_s_ > kLongFailure_s;
    check_.forget_counter();
    retry_s_ = now_s + std::min(0.1 * failures_, 5.0);
    if (!again) gives_energy_ = fault != device::DeviceFault::not_supported && fault != device::DeviceFault::no_driver;
    complaints_.raise(fault == device::DeviceFault::lost ? Cause::device : Cause::energy,
                      fmt::format("energy is not measured: {}", energy.error().message));
    return;
  }
  const double after = clock_();
  fails_long_ = false;
  if (std::exchange(failures_, 0) > 0 && !check_.refused()) {
    complaints_.clear(Cause::energy, "energy is measured again");
    complaints_.clear(Cause::device, "energy is measured again: the device answers");
  }
  retry_s_ = 0;
  check_.counter(now_s, energy->value());
  judge_counter(now_s);
  const auto edge = edges_.read(now_s, after, energy->value());
  if (edges_.resting() && !std::exchange(said_wide_edges_, true)) {
    complaints_.say(
        LogLevel::warning,
        "energies are less exact: the moments at which the energy counter moves cannot be predicted (it "
        "moves irregularly or seldom, its calls are slow, or the machine is busy); tried again every few minutes");
  }
  if (!edge || check_.refused()) return;
  if (last_edge_ && meter_.is_possible(*last_edge_, *edge)) total_j_ += edge->energy_j - last_edge_->energy_j;
  last_edge_ = edge;
  meter_.edge(*edge);
}

/// The power sensor and the limit, by which the counter is judged.
void IterationMeter::look_at_power(double now_s) {
  if (now_s >= next_limits_s_) look_at_limits(now_s);
  const auto power = gpu_->power();
  gives_power_ = power || power.error().fault != device::DeviceFault::not_supported;
  check_.power(now_s, power ? power->value() : 0);
  meter_.possible_powers(check_.least_w(), check_.most_w());
}

void IterationMeter::look_at_limits(double now_s) {
  if (next_limits_s_ == 0) {
    if (const auto conditions = gpu_->conditions()) {
      if (conditions->whole_module) check_.of_module();
      check_.limit(conditions->default_power_limit.value());
    }
  }
  next_limits_s_ = now_s + kLimitsInterval_s;
  if (const auto limit = gpu_->power_limit()) check_.limit(limit->value());
}

/// A refused counter gives no energies until it is believed again.
void IterationMeter::judge_counter(double now_s) {
  if (!check_.judge(now_s)) return;
  if (check_.refused()) {
    meter_.forget_edges();
    last_edge_.reset();
    complaints_.raise(Cause::energy, "energy is not measured: " + check_.wrong());
  } else if (!check_.wrong().empty()) {
    complaints_.raise(Cause::energy, check_.wrong());
  } else {
    complaints_.clear(Cause::energy, "energy is measured: the counter agrees with the power sensor");
  }
}

/// Reads whether the device was throttled since the last reading, and its current clock.
void IterationMeter::look_at_clock(double now_s) {
  const auto events = gpu_->clock_events();
  const double after = clock_();
  if (events && events->throttled() && sets_clocks_) {
    meter_.throttled(looked_s_ == 0 ? now_s - kEventsInterval_s : looked_s_, after);
  }
  gives_events_ = events || events.error().fault != device::DeviceFault::not_supported;
  if (const auto clock = gpu_->clock()) {
    seen_.push_back({now_s, *clock, events && events->throttled()});
    if (seen_.size() > 1000) seen_.pop_front();
  }
  looked_s_ = now_s;
  next_events_s_ = now_s + kEventsInterval_s;
}

/// Computes each computation's time as if it had run at its clock alone, and what the speed curves learn from it.
void IterationMeter::settle_times(Pending& pending) {
  MeasuredIteration& iteration = pending.iteration;
  for (std::size_t i = 0; i < pending.ran.size(); ++i) {
    Ran& ran = pending.ran[i];
    MeasuredComputation& computation = iteration.computations[i];
    mixed_ += ran.mixed ? 1 : 0;
    late_ += ran.late ? 1 : 0;
    if (iteration.throttled || ran.pieces.empty()) continue;
    SpeedCurve& speed = speeds_[static_cast<std::size_t>(ran.kind)];
    TimeEstimate time{computation.time_s, 0};
    if (ran.mixed) time = speed.alone(ran.pieces, ran.clock_mhz, switch_latency_stddev_s_);
    speed.learn(ran.clock_mhz, time);
    if (time.stddev_s > kSureWithin * time.time_s) {
      ++unsure_;
      ran.unsure = true;
      continue;
    }
    iteration.time_s += time.time_s - computation.time_s;
    computation.time_s = time.time_s;
    ran.time_stddev_s = time.stddev_s;
    const auto seen = std::ranges::find_if(
        seen_work_, [&](const Seen& s) { return s.kind == ran.kind && s.clock_mhz == ran.clock_mhz; });
    Seen& work = seen != seen_work_.end() ? *seen : seen_work_.emplace_back(Seen{ran.kind, ran.clock_mhz, {}, 0});
    if (work.times_s.size() == 15) work.times_s.erase(work.times_s.begin());
    work.times_s.push_back(computation.time_s);
    ++work.samples;
  }
}

/// All-reduce, optimizer step, and the wait for other ranks: a step contains their energy, an iteration's time ends
/// before.
double IterationMeter::energy_after_last(const Pending& pending, const MeteredStep& step) const {
  double energy_j = 0;
  double waits_s = pending.step_end_s - pending.last_s;
  for (const MeteredSpan& span : step.spans) {
    if (span.span.from_s < pending.last_s) continue;
    energy_j += std::max(span.energy_j, 0.0);
    waits_s -= span.span.to_s - span.span.from_s;
  }
  if (waits_s <= 0) return energy_j;
  const int clock =
      pending.ran.empty() || pending.ran.back().clock_mhz == 0 ? highest_mhz_ : pending.ran.back().clock_mhz;
  const double most_w = step.energy_j / (pending.step_end_s - pending.begin_s);  // while little is known
  const double power_w = std::clamp(meter_.model().power(meter_.waiting(), clock).power_w, 0.0, most_w);
  return energy_j + waits_s * power_w;
}

/// Since the end of the step before: this rank's wait for the others, optimizer, next batch.
double IterationMeter::energy_before(const Pending& pending, const MeteredStep& step) {
  const double step_s = pending.step_end_s - pending.begin_s, gap_s = pending.gap_s - pending.paced_s;
  if (step_s <= 0) return 0;
  const PowerModel& model = meter_.model();
  const int kind = model.seen_s(meter_.between()) > kSeenEnough_s ? meter_.between() : meter_.waiting();
  const double power_w = std::clamp(model.rough_power_w(kind, highest_mhz_), 0.0, step.energy_j / step_s);
  std::vector<double>& last_s = gaps_s_[pending.iteration.plan_version == 0 ? 0 : 1];
  const double usual_s = last_s.empty() ? 0 : upper_median(last_s);
  if (gap_s < 0) return usual_s * power_w;
  const double most_s = last_s.size() < kFewGaps ? step_s : std::max(3 * usual_s, usual_s + kUnusualShare * step_s);
  if (last_s.size() == kGapsKept) last_s.erase(last_s.begin());
  last_s.push_back(gap_s);
  if (gap_s > most_s) return usual_s * power_w;
  return step.gap_j ? *step.gap_j - pending.paced_s * power_w : gap_s * power_w;  // may give back what the model took
}

void IterationMeter::settle_energies(Pending& pending, const MeteredStep& step) {
  MeasuredIteration& iteration = pending.iteration;
  iteration.energy_j = step.energy_j;
  if (step.energy_j < 0) return;
  if (iteration.window < 0) {
    const double before_j = energy_before(pending, step);
    iteration.energy_j = pending.comparable ? step.energy_j + before_j : -1;
    return;
  }
  iteration.energy_j -= energy_after_last(pending, step);
  for (std::size_t i = 0; i < step.spans.size(); ++i) {
    const MeteredSpan& span = step.spans[i];
    const Ran& ran = pending.ran[pending.computation_of_span[i]];
    MeasuredComputation& computation = iteration.computations[pending.computation_of_span[i]];
    double energy_j = span.energy_j;
    double stddev_j = span.stddev_j;
    if (ran.mixed) {
      const PowerEstimate power = meter_.model().power(ran.kind, ran.clock_mhz);
      energy_j = power.power_w * computation.time_s;
      stddev_j = std::hypot(power.stddev_w * computation.time_s, power.power_w * ran.time_stddev_s);
      iteration.energy_j += energy_j - span.energy_j;
    }
    if (energy_j > 0 && stddev_j < kKnownWithin * energy_j) computation.energy_j = energy_j;
  }
  // Other computations of the iteration remain valid.
  for (std::size_t i = 0; i < pending.ran.size(); ++i) {
    if (pending.ran[i].unsure) iteration.computations[i].time_s = iteration.computations[i].energy_j = 0;
  }
}

void IterationMeter::finish(const MeteredStep& step, std::vector<MeasuredIteration>& into) {
  while (!pending_.empty() && pending_.front().tag <= step.tag) {
    Pending pending = std::move(pending_.front());
    pending_.pop_front();
    MeasuredIteration& iteration = pending.iteration;
    const double time_s = iteration.time_s;
    iteration.throttled = pending.tag == step.tag && step.throttled;
    settle_times(pending);
    if (pending.tag == step.tag) {
      settle_energies(pending, step);
      last_iteration_j_ = iteration.window < 0 ? iteration.energy_j : step.energy_j;
    }
    if (iteration.window < 0) {
      iteration.time_s = time_s;
      iteration.computations.clear();
    } else {
      count_in_window(pending);
    }
    if (pending.wanted) into.push_back(std::move(iteration));
  }
}

/// A window ends with its last iteration, whether that was usable or not. In windows that last until the next
/// plan, iterations count until there are enough: those without energy where there is a counter, such as those before
/// its first edge, do not count; the next ones have it.
void IterationMeter::count_in_window(Pending& pending) {
  MeasuredIteration& iteration = pending.iteration;
  if (iteration.window != window_) {
    window_ = iteration.window;
    window_left_ = pending.window_iterations;
    window_ran_ = 0;
  }
  const bool has_energy = iteration.energy_j >= 0 || !measures_energy();
  ++window_ran_;
  const bool last = pending.window_ends && window_ran_ == pending.window_iterations;
  pending.wanted &= window_left_ > 0 && has_energy;
  if (pending.wanted) {
    iteration.ends_window = --window_left_ == 0 || last;
    return;
  }
  if (!last || window_left_ == 0) return;
  window_left_ = 0;
  iteration.missed = !pending.clean      ? "a computation was not recorded from begin to end"
                     : !pending.followed ? "the rank did not follow the window's clocks"
                     : !has_energy       ? "the energy counter gave no energy of an iteration"
                                         : "no iteration could be used";
  iteration.ends_window = true;
  iteration.computations.clear();
  pending.wanted = true;
}

std::vector<MeasuredIteration> IterationMeter::measured(double now_s, bool all) {
  std::vector<MeasuredIteration> result;
  if (pending_.empty()) return result;
  const std::size_t waiting = pending_.size();
  for (const MeteredStep& step : meter_.take()) finish(step, result);
  const bool late = !pending_.empty() && now_s - pending_.front().end_s > kPatience_s;
  const bool looked_at = !gives_events_ || pending_.empty() || looked_s_ >= pending_.back().end_s;
  if ((!measures_energy() && looked_at) || all || late) {
    for (const MeteredStep& step : meter_.flush()) finish(step, result);
    finish({next_tag_, -1, {}, false, {}}, result);  // the rest
  }
  if (pending_.size() == waiting) return result;
  publish();
  if (now_s >= next_powers_s_) {
    publish_powers();
    next_powers_s_ = now_s + kPowersInterval_s;
  }
  return result;
}

void IterationMeter::publish() {
  const std::lock_guard lock(mutex_);
  facts_.known = last_edge_.has_value();
  facts_.counter_period_s = edges_.period_s();
  facts_.total_j = total_j_;
  facts_.last_iteration_j = last_iteration_j_;
  facts_.intervals = meter_.intervals();
  facts_.throttled = meter_.intervals_throttled();
  facts_.rejected = meter_.intervals_rejected();
  facts_.mixed = mixed_;
  facts_.late = late_;
  facts_.unsure = unsure_;
}

void IterationMeter::publish_powers() {
  const PowerModel& model = meter_.model();
  const bool known = last_edge_ && model.seen_s(meter_.waiting()) > 0.5;
  PowerEstimate blocking;
  if (known) blocking = model.power(meter_.waiting(), highest_mhz_);
  std::vector<MeasuredPower> powers;
  for (const Seen& seen : seen_work_) {
    const int instruction =
        seen.kind < kChunked * chunks_ ? seen.kind / chunks_ : seen.kind - kChunked * chunks_ + kChunked;
    powers.push_back({std::string(name_of(static_cast<model::Instruction>(instruction))),
                      seen.kind < kChunked * chunks_ ? seen.kind % chunks_ : 0, seen.clock_mhz,
                      model.power(seen.kind, seen.clock_mhz), upper_median(seen.times_s), seen.samples});
    if (!known) continue;
    const bool listed = std::ranges::any_of(
        powers, [&](const MeasuredPower& p) { return p.work == "blocking" && p.clock_mhz == seen.clock_mhz; });
    if (!listed) powers.push_back({"blocking", 0, seen.clock_mhz, model.power(meter_.waiting(), seen.clock_mhz), 0, 0});
  }
  for (MeasuredPower& power : powers) power.clock_mhz = clocks_known_ ? power.clock_mhz : 0;
  const std::lock_guard lock(mutex_);
  facts_.blocking = blocking;
  facts_.powers = std::move(powers);
}

EnergyFacts IterationMeter::facts() const {
  const std::lock_guard lock(mutex_);
  return facts_;
}

}  // namespace perseus::client
