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

}  // namespace

double mean_power_w(std::span<const EnergyReading> readings, double from_s, double until_s) {
  const std::size_t from = first_from(readings, from_s), until = first_from(readings, until_s);
  if (from >= readings.size() || readings.empty()) return 0;
  const std::size_t last = std::min(until, readings.size() - 1);
  return last > from ? mean_w(readings[from], readings[last]) : 0;
}

WindowVerdict judge_windows(std::span<const EnergyReading> readings, const JudgedLimit& limit, double window_s) {
  WindowVerdict verdict;
  if (readings.size() < 2) return verdict;
  const double interval_s = readings[1].at_s - readings[0].at_s;
  const auto steps = static_cast<std::size_t>(std::max(1.0, std::ceil(window_s / interval_s - kRounding_s)));
  const std::size_t first = first_from(readings, limit.from_s);
  std::size_t last = first;
  for (std::size_t k = first; k + steps < readings.size(); ++k) {
    if (readings[k + steps].at_s > limit.until_s + kRounding_s) break;
    last = k + steps;
    const double power_w = mean_w(readings[k], readings[k + steps]);
    if (verdict.windows++ == 0 || power_w > verdict.greatest_w) {
      verdict.greatest_w = power_w;
      verdict.begins_s = readings[k].at_s;
    }
    verdict.over += power_w > limit.limit.value() ? 1 : 0;
  }
  if (last > first) verdict.mean_w = mean_w(readings[first], readings[last]);
  return verdict;
}

}  // namespace perseus::replay
