#include "evaluation/calibration/clock_times.h"

#include <algorithm>
#include <cmath>

namespace perseus::calibration {
namespace {

struct ClockSample {
  Megahertz clock;
  int microbatch;
  double log_time;
};

/// Means of log times by group, after each sample is reduced by its other effect.
class Effect {
 public:
  explicit Effect(int groups) : value(groups), count(groups) {}
  template <class Group, class Reduced>
  void average(const std::vector<ClockSample>& samples, Group group, Reduced reduced) {
    std::ranges::fill(value, 0);
    std::ranges::fill(count, 0);
    for (const ClockSample& sample : samples) {
      value[group(sample)] += reduced(sample);
      ++count[group(sample)];
    }
    for (std::size_t i = 0; i < value.size(); ++i) value[i] /= std::max(count[i], 1);
  }
  std::vector<double> value;
  std::vector<int> count;
};

std::vector<ClockTime> fit(const std::vector<ClockSample>& samples) {
  constexpr int most_rounds = 200;
  constexpr double settled = 1e-12;
  std::vector<Megahertz> clocks;
  int microbatches = 0;
  for (const ClockSample& sample : samples) {
    clocks.push_back(sample.clock);
    microbatches = std::max(microbatches, sample.microbatch + 1);
  }
  std::ranges::sort(clocks);
  clocks.erase(std::unique(clocks.begin(), clocks.end()), clocks.end());
  const auto clock_of = [&](const ClockSample& s) {
    return std::ranges::lower_bound(clocks, s.clock) - clocks.begin();
  };
  const auto microbatch_of = [](const ClockSample& s) { return s.microbatch; };
  Effect clock(static_cast<int>(clocks.size())), microbatch(microbatches);
  const auto without_microbatch = [&](const ClockSample& s) { return s.log_time - microbatch.value[s.microbatch]; };

  for (int round = 0; round < most_rounds; ++round) {
    const std::vector<double> before = clock.value;
    clock.average(samples, clock_of, without_microbatch);
    double change = 0;
    for (std::size_t i = 0; i < clocks.size(); ++i) change = std::max(change, std::abs(clock.value[i] - before[i]));
    if (change < settled) break;
    microbatch.average(samples, microbatch_of,
                       [&](const ClockSample& s) { return s.log_time - clock.value[clock_of(s)]; });
    double mean = 0;
    for (const double v : microbatch.value) mean += v / microbatches;
    for (double& v : microbatch.value) v -= mean;
  }

  std::vector<double> squares(clocks.size());
  for (const ClockSample& s : samples) {
    const auto c = clock_of(s);
    const double residual = without_microbatch(s) - clock.value[c];
    squares[c] += residual * residual;
  }
  std::vector<ClockTime> times;
  for (std::size_t c = 0; c < clocks.size(); ++c) {
    const double time = std::exp(clock.value[c]);
    const int count = clock.count[c];
    times.push_back(
        {clocks[c], Seconds(time), Seconds(count > 1 ? time * std::sqrt(squares[c] / (count - 1)) : 0), count});
  }
  return times;
}

/// Least-squares line of time over 1/clock through `points`, at `clock`.
Seconds extrapolate(std::span<const ClockTime> points, Megahertz clock) {
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (const ClockTime& p : points) {
    mean_x += 1.0 / p.clock.value() / static_cast<double>(points.size());
    mean_y += p.time.value() / static_cast<double>(points.size());
  }
  for (const ClockTime& p : points) {
    const double x = 1.0 / p.clock.value() - mean_x;
    xx += x * x;
    xy += x * (p.time.value() - mean_y);
  }
  const double slope = xx > 0 ? std::max(0.0, xy / xx) : 0;
  return Seconds(mean_y + slope * (1.0 / clock.value() - mean_x));
}

}  // namespace

ClockTimes::ClockTimes(const model::RunTrace& trace, std::span<const int> plans) {
  std::map<std::pair<int, model::Instruction>, std::vector<ClockSample>> samples;
  for (const int p : plans) {
    const model::TracedPlan& plan = trace.plans[p];
    for (int stage = 0; stage < trace.num_stages(); ++stage) {
      for (const model::TracedComputation& c : plan.stages[stage])
        samples[{stage, c.instruction}].push_back({c.clock, c.microbatch, std::log(c.time.value())});
    }
  }
  for (const auto& [key, group] : samples) times_[key] = fit(group);
}

const std::vector<ClockTime>& ClockTimes::measured(int stage, model::Instruction instruction) const {
  const auto found = times_.find({stage, instruction});
  PERSEUS_CHECK(found != times_.end(), "no such computation in the traces");
  return found->second;
}

Seconds ClockTimes::at(int stage, model::Instruction instruction, Megahertz clock) const {
  constexpr std::size_t neighbors = 5;
  const std::vector<ClockTime>& times = measured(stage, instruction);
  const auto above = std::ranges::lower_bound(times, clock, {}, &ClockTime::clock);
  if (above == times.end()) return times.back().time;
  if (above->clock == clock) return above->time;
  if (above == times.begin()) return extrapolate(std::span(times).first(std::min(neighbors, times.size())), clock);
  const auto below = above - 1;
  const double x = 1.0 / clock.value(), low = 1.0 / below->clock.value(), high = 1.0 / above->clock.value();
  return below->time + (above->time - below->time) * ((x - low) / (high - low));
}

}  // namespace perseus::calibration
