#include "server/jobs/iteration_energy_meter.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace perseus::jobs {
namespace {

constexpr std::size_t kMostKept = 256;
constexpr double kUsualTime = 1.1;  ///< times the median: longer iterations waited for something unusual

void keep(std::vector<double>& values, std::int64_t number, double value) {
  if (values.size() < kMostKept) {
    values.push_back(value);
  } else {
    values[static_cast<std::size_t>(number) % kMostKept] = value;
  }
}

/// Mean energy of the iterations that took the usual time.
double usual_energy_j(const std::vector<double>& energies_j, const std::vector<double>& times_s, double median_s) {
  double sum_j = 0;
  int count = 0;
  for (std::size_t i = 0; i < energies_j.size(); ++i) {
    if (times_s[i] > kUsualTime * median_s) continue;
    sum_j += energies_j[i];
    ++count;
  }
  return sum_j / count;
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
    const double median_s = median(own.times_s);
    measured.energy_j += usual_energy_j(own.energies_j, own.times_s, median_s);
    measured.time_s = std::max(measured.time_s, median_s);
  }
  return measured;
}

void IterationEnergyMeter::forget_before(std::int64_t version) {
  std::erase_if(versions_, [&](const auto& entry) { return entry.first.first != 0 && entry.first.first < version; });
}

}  // namespace perseus::jobs
