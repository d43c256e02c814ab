#include "simulation/replay/window_verdict.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace perseus::replay {
namespace {

constexpr double kRounding_s = 1e-6;  // readings at equal intervals: sums of one interval

std::size_t first_from(std::span<const EnergyReading> readings, double from_s) {
  const auto found = std::ranges::lower_bound(readings, from_s - kRounding_s, {}, &EnergyReading::at_s);
  return static_cast<std::size_t>(found - readings.begin());
}

double mean_w(const EnergyReading& from, const EnergyReading& until) {
  return (until.energy_j - from.energy_j) / (until.at_s - from.at_s);
}

double on_line(const LimitPoint& a, const LimitPoint& b, double at_s) {
  return a.limit_w + (b.limit_w - a.limit_w) * (at_s - a.at_s) / (b.at_s - a.at_s);
}

double mean_limit_w(std::span<const LimitPoint> limit, double from_s, double until_s) {
  double sum_j = std::max(0.0, std::min(until_s, limit.front().at_s) - from_s) * limit.front().limit_w;
  for (std::size_t k = 0; k + 1 < limit.size(); ++k) {
    const double a_s = std::max(from_s, limit[k].at_s), b_s = std::min(until_s, limit[k + 1].at_s);
    if (b_s > a_s) sum_j += (b_s - a_s) * on_line(limit[k], limit[k + 1], (a_s + b_s) / 2);
  }
  sum_j += std::max(0.0, until_s - std::max(from_s, limit.back().at_s)) * limit.back().limit_w;
  return sum_j / (until_s - from_s);
}

}  // namespace

double limit_at(std::span<const LimitPoint> limit, double at_s) {
  const auto next = std::ranges::upper_bound(limit, at_s, {}, &LimitPoint::at_s);
  if (next == limit.begin()) return 0;
  return next == limit.end() ? limit.back().limit_w : on_line(*(next - 1), *next, at_s);
}

double mean_power_w(std::span<const EnergyReading> readings, double from_s, double until_s) {
  const std::size_t from = first_from(readings, from_s), until = first_from(readings, until_s);
  if (from >= readings.size() || readings.empty()) return 0;
  const std::size_t last = std::min(until, readings.size() - 1);
  return last > from ? mean_w(readings[from], readings[last]) : 0;
}

WindowVerdict judge_windows(std::span<const EnergyReading> readings, std::span<const LimitPoint> limit,
                            const JudgedTime& time, double window_s) {
  WindowVerdict verdict;
  if (readings.size() < 2 || limit.empty()) return verdict;
  const double interval_s = readings[1].at_s - readings[0].at_s;
  const auto steps = static_cast<std::size_t>(std::max(1.0, std::ceil(window_s / interval_s - kRounding_s)));
  const std::size_t first = first_from(readings, time.from_s);
  std::size_t last = first;
  for (std::size_t k = first; k + steps < readings.size(); ++k) {
    const EnergyReading &begin = readings[k], &end = readings[k + steps];
    if (end.at_s > time.until_s + kRounding_s) break;
    last = k + steps;
    const double power_w = mean_w(begin, end), limit_w = mean_limit_w(limit, begin.at_s, end.at_s);
    if (verdict.windows++ == 0 || power_w - limit_w > verdict.power_w - verdict.limit_w) {
      verdict.power_w = power_w;
      verdict.limit_w = limit_w;
      verdict.begins_s = begin.at_s;
    }
    verdict.over += power_w > limit_w ? 1 : 0;
  }
  if (last > first) verdict.mean_w = mean_w(readings[first], readings[last]);
  return verdict;
}

}  // namespace perseus::replay
