#include "server/jobs/iteration_energy_meter.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace perseus::jobs {
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

}  // namespace

void IterationEnergyMeter::report(std::int64_t version, int shape, int rank, const std::vector<Joules>& energies,
                                  const std::vector<Seconds>& times) {
  OfVersion& known = versions_[{version, shape}];
  ++known.reports;
  OfRank& own = known.ranks[rank];
  for (std::size_t i = 0; i < std::min(energies.size(), times.size()); ++i) {
    const double energy_j = energies[i].value(), time_s = times[i].value();
    if (!(std::isfinite(energy_j) && energy_j > 0 && std::isfinite(time_s) && time_s > 0)) continue;
    keep(own.energies_j, own.iterations, energy_j);
    keep(own.times_s, own.iterations, time_s);
    ++own.iterations;
  }
}

std::optional<EnergyMeasured> IterationEnergyMeter::take(std::int64_t version, int shape, int ranks) {
  OfVersion& known = versions_[{version, shape}];
  if (static_cast<int>(known.ranks.size()) < ranks || known.reports < ranks) return std::nullopt;
  known.reports = 0;
  const auto fewest = std::ranges::min_element(known.ranks, {}, [](const auto& one) {
                        return one.second.iterations;
                      })->second.iterations;
  if (fewest < std::max<std::int64_t>(1, 2 * known.taken)) return std::nullopt;
  known.taken = fewest;
  EnergyMeasured measured{version, fewest, 0, 0, shape};
  for (const auto& [rank, own] : known.ranks) {
    const double median_s = lower_median(own.times_s);
    double sum_j = 0, sum_s = 0, least_s = median_s, count = 0;
    for (std::size_t i = 0; i < own.times_s.size(); ++i) {
      if (std::abs(own.times_s[i] - median_s) > kUsual * median_s) continue;
      sum_j += own.energies_j[i];
      sum_s += own.times_s[i];
      least_s = std::min(least_s, own.times_s[i]);
      ++count;
    }
    measured.energy_j += sum_j / count;
    if (sum_s / count <= measured.time_s) continue;
    measured.time_s = sum_s / count;
    measured.least_s = least_s;
  }
  return measured;
}

void IterationEnergyMeter::forget_before(std::int64_t version) {
  std::erase_if(versions_, [&](const auto& entry) { return entry.first.first != 0 && entry.first.first < version; });
}

}  // namespace perseus::jobs
