#include "training/client/energy_meter.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace perseus::client {
namespace {

constexpr double kLeastPower_w = 5;  ///< for dividing energy: an estimate may be negative at first
constexpr double kLeastStddev_j = 0.02;
constexpr double kSureStddevs = 3;
constexpr double kPowerStep_w = 150;  ///< approximate change of power at an edge's uncertain moment
constexpr double kLongestInterval_s = 5;
constexpr double kExact = 0.005;        ///< of an interval: how well its length must be known to divide it
constexpr double kLongestWait_s = 2.5;  ///< for an exact edge, for the powers, and of a step for the work after it
// Of a step's energy: how well it must be known where the step begins and ends, and after the longest wait.
constexpr double kSure = 0.01, kHardlySure = 0.05;
constexpr int kModelIsGrown = 30;  ///< intervals
constexpr double kClocksKept_s = 10;

}  // namespace

EnergyMeter::EnergyMeter(int kinds, int lowest_mhz, int highest_mhz)
    : kinds_(kinds), model_(kinds + 2, lowest_mhz, highest_mhz), clocks_(Megahertz(highest_mhz)) {}

void EnergyMeter::step(std::int64_t tag, double from_s, double to_s, std::vector<WorkSpan> spans, bool detailed) {
  known_until_s_ = std::max(known_until_s_, to_s);
  steps_.push_back({tag, from_s, to_s, 0, {}, false, detailed, std::move(spans)});
}

void EnergyMeter::edge(const CounterEdge& edge) { edges_.push_back(edge); }
void EnergyMeter::throttled(double from_s, double to_s) { throttled_.push_back({from_s, to_s}); }
void EnergyMeter::other_clock(double from_s, double to_s) { other_clock_.push_back({from_s, to_s}); }
void EnergyMeter::unknown(double from_s, double to_s) {
  unknown_.push_back({from_s, to_s});
  known_until_s_ = std::max(known_until_s_, to_s);
}

bool EnergyMeter::touches(const std::deque<Stretch>& stretches, double from_s, double to_s) {
  return std::ranges::any_of(stretches, [&](const Stretch& s) { return s.from_s < to_s && s.to_s > from_s; });
}

void EnergyMeter::cut_at_clocks(double from_s, double to_s, int kind, std::vector<TimedPiece>& into) const {
  clocks_.for_each(Seconds(from_s), Seconds(to_s), [&](Megahertz clock, Seconds from, Seconds to) {
    into.push_back({from.value(), to.value(), {kind, clock.value(), (to - from).value()}});
  });
}

/// All activity in that interval: work, waiting in steps, and time between them.
std::vector<EnergyMeter::TimedPiece> EnergyMeter::pieces(double from_s, double to_s) const {
  std::vector<TimedPiece> result;
  double at = from_s;
  const auto fill = [&](double until, int kind) {
    until = std::min(until, to_s);
    cut_at_clocks(at, until, kind, result);
    at = std::max(at, until);
  };
  for (const Step& step : steps_) {
    if (step.to_s <= at) continue;
    if (step.from_s >= to_s) break;
    fill(step.from_s, between());
    auto span = std::ranges::lower_bound(step.spans, at, {}, &WorkSpan::to_s);
    for (; span != step.spans.end() && span->from_s < to_s; ++span) {
      fill(span->from_s, waiting());
      fill(span->to_s, span->kind);
    }
    fill(step.to_s, waiting());
  }
  fill(to_s, between());
  return result;
}

bool EnergyMeter::is_possible(const CounterEdge& from, const CounterEdge& to) const {
  const double energy_j = to.energy_j - from.energy_j, took_s = to.at_s - from.at_s;
  const double unsure_s = kSureStddevs * std::hypot(from.stddev_s, to.stddev_s);
  return energy_j >= least_w_ * (took_s - unsure_s) && energy_j <= most_w_ * (took_s + unsure_s) && energy_j >= 0;
}

/// What the interval teaches the model: also where its length is not well known.
void EnergyMeter::learn(const CounterEdge& from, const CounterEdge& to) {
  const double energy = to.energy_j - from.energy_j;
  const double took = to.at_s - from.at_s;
  const bool was_throttled = touches(throttled_, from.at_s, to.at_s);
  const bool strange = !is_possible(from, to) || took > kLongestInterval_s ||
                       touches(other_clock_, from.at_s, to.at_s) || touches(unknown_, from.at_s, to.at_s);
  ++intervals_;
  throttled_intervals_ += was_throttled ? 1 : 0;
  rejected_intervals_ += strange && !was_throttled ? 1 : 0;
  if (was_throttled || strange) return;
  std::vector<WorkPiece> sum;
  for (const TimedPiece& piece : pieces(from.at_s, to.at_s)) {
    const auto same = std::ranges::find_if(sum, [&](const WorkPiece& known) {
      return known.kind == piece.work.kind && known.clock_mhz == piece.work.clock_mhz;
    });
    if (same != sum.end()) {
      same->seconds += piece.work.seconds;
    } else {
      sum.push_back(piece.work);
    }
  }
  const double moments = std::hypot(from.stddev_s, to.stddev_s) * kPowerStep_w;
  model_.add(sum, energy, std::hypot(moments, kLeastStddev_j, 0.001 * energy));
}

/// The energy at the moments where steps begin and end.
void EnergyMeter::divide(const CounterEdge& from, const CounterEdge& to, bool sure) {
  const double energy = to.energy_j - from.energy_j;
  const bool reset = !is_possible(from, to);  // the driver was loaded again, or nonsense
  const std::vector<TimedPiece> work = pieces(from.at_s, to.at_s);
  double weights = 0;
  std::vector<double> powers;
  for (const TimedPiece& piece : work) {
    powers.push_back(std::max(model_.rough_power_w(piece.work.kind, piece.work.clock_mhz), kLeastPower_w));
    weights += powers.back() * piece.work.seconds;
  }
  const auto energy_at = [&](double at_s) {
    double until = 0;
    for (std::size_t i = 0; i < work.size(); ++i) {
      until += powers[i] * std::clamp(at_s - work[i].from_s, 0.0, work[i].to_s - work[i].from_s);
    }
    return from.energy_j + (weights > 0 ? energy * until / weights : 0);
  };
  for (Step& step : steps_) {
    const bool begins = step.tag >= 0 && step.from_s >= from.at_s && step.from_s < to.at_s;
    const bool known = !reset && (sure || step.detailed);
    if (begins && known) begin_at(step, energy_at(step.from_s));
    if (step.tag >= 0 && step.to_s >= from.at_s && step.to_s < to.at_s) {
      end_at(step, known ? std::optional(energy_at(step.to_s)) : std::nullopt);
    }
    if (reset) step.has_begin = false;
  }
  if (reset) last_end_j_.reset();
}

MeteredStep EnergyMeter::metered(const Step& step) const {
  MeteredStep result;
  result.tag = step.tag;
  result.gap_j = step.gap_j;
  result.throttled = touches(throttled_, step.from_s, step.to_s);
  for (const WorkSpan& span : step.spans) {
    MeteredSpan& metered = result.spans.emplace_back(MeteredSpan{span});
    if (!step.detailed) continue;
    metered.energy_j = 0;
    clocks_.for_each(Seconds(span.from_s), Seconds(span.to_s), [&](Megahertz clock, Seconds from, Seconds to) {
      const PowerEstimate power = model_.power(span.kind, clock.value());
      metered.energy_j += power.power_w * (to - from).value();
      metered.stddev_j += power.stddev_w * (to - from).value();
    });
  }
  return result;
}

std::vector<MeteredStep> EnergyMeter::take() {
  while (learned_ + 1 < edges_.size() && edges_[learned_ + 1].at_s <= known_until_s_) {
    const CounterEdge before = edges_[learned_], next = edges_[learned_ + 1];
    const bool possible = is_possible(before, next);
    if (!possible) close_interval();
    learn(before, next);
    ++learned_;
    const double took_s = next.at_s - edges_.front().at_s;
    const bool exact = std::hypot(edges_.front().stddev_s, next.stddev_s) <= kExact * took_s;
    if (exact || !possible || took_s > kLongestWait_s) close_interval();
  }
  const bool urgent = !edges_.empty() && std::ranges::any_of(steps_, [&](const Step& step) {
    return step.tag >= 0 && edges_.back().at_s - step.to_s > (step.detailed ? 0 : kLongestWait_s);
  });
  if (urgent) close_interval();
  divide_intervals(urgent);
  if (urgent && model_.intervals() >= kModelIsGrown) give_out_last_steps();
  return std::exchange(done_, {});
}

/// From the first edge to the last one that the model has learned from.
void EnergyMeter::close_interval() {
  if (learned_ == 0) return;
  closed_.push_back({edges_.front(), edges_[learned_]});
  edges_.erase(edges_.begin(), edges_.begin() + static_cast<std::ptrdiff_t>(learned_));
  learned_ = 0;
}

/// In order, each as soon as the model knows the powers in it. `all`: without waiting for that.
void EnergyMeter::divide_intervals(bool all) {
  while (!closed_.empty()) {
    const auto [from, to] = closed_.front();
    const Uncertainty unsure = uncertainty(from, to);
    if (!all && unsure.powers > kSure && edges_.back().at_s - from.at_s <= kLongestWait_s) return;
    divide(from, to, std::hypot(unsure.powers, unsure.edges) <= kHardlySure);
    closed_.pop_front();
    forget(to.at_s);
  }
}

double EnergyMeter::power_stddev_w(const WorkPiece& work) {
  const auto known = std::ranges::find_if(
      stddevs_, [&](const PowerStddev& one) { return one.kind == work.kind && one.clock_mhz == work.clock_mhz; });
  const int now = model_.intervals();
  PowerStddev& one =
      known != stddevs_.end() ? *known : stddevs_.emplace_back(PowerStddev{work.kind, work.clock_mhz, now});
  if (one.stddev_w == 0 || 4 * (now - one.intervals) > one.intervals - one.first) {
    one.stddev_w = model_.power(one.kind, one.clock_mhz).stddev_w;
    one.intervals = now;
  }
  return one.stddev_w;
}

/// Of the energy at the moments where steps begin and end, compared with those of the steps: the largest.
EnergyMeter::Uncertainty EnergyMeter::uncertainty(const CounterEdge& from, const CounterEdge& to) {
  struct Share {
    const WorkPiece* work;
    double stddev_w, before_s, after_s;
  };
  const std::vector<TimedPiece> work = pieces(from.at_s, to.at_s);
  const double power_w = (to.energy_j - from.energy_j) / (to.at_s - from.at_s);
  std::vector<Share> shares;
  Uncertainty largest;
  const auto look_at = [&](double at_s, double step_j) {
    shares.clear();
    for (const TimedPiece& piece : work) {
      auto share = std::ranges::find_if(shares, [&](const Share& known) {
        return known.work->kind == piece.work.kind && known.work->clock_mhz == piece.work.clock_mhz;
      });
      if (share == shares.end()) share = shares.insert(share, {&piece.work, power_stddev_w(piece.work), 0, 0});
      const double before_s = std::clamp(at_s - piece.from_s, 0.0, piece.to_s - piece.from_s);
      share->before_s += before_s;
      share->after_s += piece.to_s - piece.from_s - before_s;
    }
    const double before = (at_s - from.at_s) / (to.at_s - from.at_s);
    double variance = 0;
    for (const Share& s : shares) {
      variance += std::pow(s.stddev_w * (s.before_s * (1 - before) - s.after_s * before), 2);
    }
    largest.powers = std::max(largest.powers, std::sqrt(variance) / step_j);
    const double edges_s = std::hypot(from.stddev_s * (1 - before), to.stddev_s * before);
    largest.edges = std::max(largest.edges, power_w * edges_s / step_j);
  };
  for (const Step& step : steps_) {
    const double step_j = std::max(power_w, kLeastPower_w) * (step.to_s - step.from_s);
    for (const double at_s : {step.from_s, step.to_s}) {
      if (step.tag >= 0 && step_j > 0 && at_s >= from.at_s && at_s < to.at_s) look_at(at_s, step_j);
    }
  }
  return largest;
}

/// The counter at a moment of the first interval, whose later work is not known: by the model, or by the share of time
/// while that is young: up to a tenth of a short step wrong, so only where waiting for the work's end takes too long.
double EnergyMeter::modelled_j(double at_s) const {
  const CounterEdge& from = edges_[0];
  const double energy_j = edges_[1].energy_j - from.energy_j;
  if (model_.intervals() < kModelIsGrown) {
    return from.energy_j + energy_j * (at_s - from.at_s) / (edges_[1].at_s - from.at_s);
  }
  double since_j = 0;
  for (const TimedPiece& piece : pieces(from.at_s, at_s)) {
    since_j +=
        std::max(model_.rough_power_w(piece.work.kind, piece.work.clock_mhz), kLeastPower_w) * piece.work.seconds;
  }
  return from.energy_j + std::min(since_j, energy_j);
}

/// Steps that end between two edges whose interval is not completely known: the work after them has not ended.
void EnergyMeter::give_out_last_steps() {
  close_interval();
  divide_intervals(true);
  if (edges_.size() < 2) return;
  const CounterEdge& from = edges_[0];
  const CounterEdge& to = edges_[1];
  const bool possible = is_possible(from, to);
  for (Step& step : steps_) {
    if (step.tag < 0 || step.to_s < from.at_s || step.to_s >= to.at_s) continue;
    if (possible && !step.has_begin && step.from_s >= from.at_s) begin_at(step, modelled_j(step.from_s));
    end_at(step, possible ? std::optional(modelled_j(step.to_s)) : std::nullopt);
  }
}

void EnergyMeter::begin_at(Step& step, double energy_j) const {
  step.begin_energy_j = energy_j;
  step.has_begin = true;
  if (last_end_j_) step.gap_j = energy_j - *last_end_j_;
}

/// Returns the step to the caller. Nothing: the counter at its end is not known.
void EnergyMeter::end_at(Step& step, std::optional<double> energy_j) {
  MeteredStep result = metered(step);
  if (step.has_begin && energy_j) result.energy_j = std::max(*energy_j - step.begin_energy_j, 0.0);
  last_end_j_ = energy_j;
  done_.push_back(std::move(result));
  step.tag = -1;
}

/// Data before the last measured edge is not needed again.
void EnergyMeter::forget(double before) {
  while (!steps_.empty() && steps_.front().tag < 0 && steps_.front().to_s < before) steps_.pop_front();
  const double oldest = steps_.empty() ? before : std::min(before, steps_.front().from_s);
  clocks_.forget_before(Seconds(oldest - kClocksKept_s));
  for (auto* const stretches : {&throttled_, &other_clock_, &unknown_}) {
    while (!stretches->empty() && stretches->front().to_s < oldest) stretches->pop_front();
  }
}

void EnergyMeter::forget_edges() {
  edges_.clear();
  closed_.clear();
  learned_ = 0;
  last_end_j_.reset();
  for (Step& step : steps_) step.has_begin = false;
}

std::vector<MeteredStep> EnergyMeter::flush() {
  std::vector<MeteredStep> result = take();
  give_out_last_steps();
  std::ranges::move(std::exchange(done_, {}), std::back_inserter(result));
  for (Step& step : steps_) {
    if (step.tag < 0) continue;
    result.push_back(metered(step));
    step.tag = -1;
  }
  // The work in an interval that began before is forgotten: the next edge begins the next one.
  learned_ = 0;
  while (!edges_.empty() && edges_.front().at_s < known_until_s_) edges_.pop_front();
  steps_.clear();
  last_end_j_.reset();
  forget(known_until_s_);
  return result;
}

}  // namespace perseus::client
