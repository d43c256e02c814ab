#include "server/savings/iteration_energy_meter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/median.h"

namespace perseus::savings {
namespace {

constexpr std::size_t kMostKept = 256;
constexpr double kUsual = 0.1;  ///< of the median: iterations that differ by more did or waited for something unusual

void keep(std::vector<double>& values, std::int64_t number, double value) {
  if (values.size() < kMostKept) {
    values.push_back(value);
  } else {
    values[static_cast<std::size_t>(number) % kMostKept] = value;
  }
}

/// Variance of the mean of values that follow one another: what one takes from its neighbor cancels in it. Fewer than
/// kFewestThatTell may be anything.
double variance_of_mean(const std::vector<double>& values, double mean) {
  const auto n = static_cast<double>(values.size());
  if (std::ssize(values) < IterationEnergyMeter::kFewestThatTell) return mean * mean;
  double variance = 0, covariance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    variance += (values[i] - mean) * (values[i] - mean) / (n - 1);
    if (i > 0) covariance += (values[i] - mean) * (values[i - 1] - mean) / (n - 1);
  }
  const double known = (n - 1) / (n - 2);  // a few values tell their deviation poorly: two, as Student's t at 95 %
  return known * known * std::clamp((variance + 2 * covariance * (1 - 1 / n)) / n, variance / (n * n), variance / n);
}

}  // namespace

void IterationEnergyMeter::report(std::int64_t version, int shape, int rank, const std::vector<Joules>& energies,
                                  const std::vector<Seconds>& times) {
  OfVersion& known = versions_[{version, shape}];
  OfRank& own = known.ranks[rank];
  const bool was_ready = own.iterations >= known.wanted;
  for (std::size_t i = 0; i < std::min(energies.size(), times.size()); ++i) {
    const double energy_j = energies[i].value(), time_s = times[i].value();
    if (!(std::isfinite(energy_j) && energy_j > 0 && std::isfinite(time_s) && time_s > 0)) continue;
    keep(own.energies_j, own.iterations, energy_j);
    keep(own.times_s, own.iterations, time_s);
    ++own.iterations;
  }
  if (!was_ready && own.iterations >= known.wanted) ++known.ready;
}

std::optional<jobs::EnergyMeasured> IterationEnergyMeter::take(std::int64_t version, int shape, int ranks) {
  OfVersion& known = versions_[{version, shape}];
  if (known.ready < ranks) return std::nullopt;
  const auto iterations = [](const auto& one) { return one.second.iterations; };
  const std::int64_t fewest = std::ranges::min_element(known.ranks, {}, iterations)->second.iterations;
  known.wanted = fewest < kFewestThatTell ? kFewestThatTell : 2 * fewest;
  known.ready = static_cast<int>(std::ranges::count_if(
      known.ranks, [&](std::int64_t own) { return own >= known.wanted; }, iterations));
  jobs::EnergyMeasured measured{version, fewest, 0, 0, shape};
  double variance = 0;
  for (const auto& [rank, own] : known.ranks) {
    const double median_s = lower_median(own.times_s);
    double sum_s = 0, least_s = median_s;
    std::vector<double> usual_j;
    for (std::size_t i = 0; i < own.times_s.size(); ++i) {
      if (std::abs(own.times_s[i] - median_s) > kUsual * median_s) continue;
      usual_j.push_back(own.energies_j[i]);
      sum_s += own.times_s[i];
      least_s = std::min(least_s, own.times_s[i]);
    }
    const auto count = static_cast<double>(usual_j.size());
    const double mean_j = std::accumulate(usual_j.begin(), usual_j.end(), 0.0) / count;
    measured.energy_j += mean_j;
    variance += variance_of_mean(usual_j, mean_j);
    if (sum_s / count <= measured.time_s) continue;
    measured.time_s = sum_s / count;
    measured.least_s = least_s;
  }
  measured.stddev_j = std::sqrt(variance);
  return measured;
}

void IterationEnergyMeter::forget_before(std::int64_t version) {
  std::erase_if(versions_, [&](const auto& entry) { return entry.first.first != 0 && entry.first.first < version; });
}

}  // namespace perseus::savings
