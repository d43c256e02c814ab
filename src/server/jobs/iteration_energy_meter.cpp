#include "server/jobs/iteration_energy_meter.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace perseus::jobs {
namespace {

constexpr std::size_t kMostKept = 256;
constexpr std::int64_t kEnoughOfHighest = 8;

void keep(std::vector<double>& values, std::int64_t number, double value) {
  if (values.size() < kMostKept) {
    values.push_back(value);
  } else {
    values[static_cast<std::size_t>(number) % kMostKept] = value;
  }
}

}  // namespace

void IterationEnergyMeter::report(std::int64_t version, int rank, const std::vector<Joules>& energies,
                                  const std::vector<Seconds>& times) {
  ++versions_[version].reports;
  OfRank& own = versions_[version].ranks[rank];
  for (std::size_t i = 0; i < std::min(energies.size(), times.size()); ++i) {
    const double energy_j = energies[i].value(), time_s = times[i].value();
    if (!(std::isfinite(energy_j) && energy_j > 0 && std::isfinite(time_s) && time_s > 0)) continue;
    keep(own.energies_j, own.iterations, energy_j);
    keep(own.times_s, own.iterations, time_s);
    ++own.iterations;
  }
}

std::optional<EnergyMeasured> IterationEnergyMeter::take(std::int64_t version, int ranks) {
  OfVersion& known = versions_[version];
  if (static_cast<int>(known.ranks.size()) < ranks || known.reports < ranks) return std::nullopt;
  known.reports = 0;
  const auto fewest = std::ranges::min_element(known.ranks, {}, [](const auto& one) {
                        return one.second.iterations;
                      })->second.iterations;
  if (fewest < std::max<std::int64_t>(1, 2 * known.taken)) return std::nullopt;
  known.taken = fewest;
  EnergyMeasured measured{version, fewest, 0, 0};
  // Savings are credited against this value: with few iterations, the least one is used.
  const bool least = version == 0 && fewest < kEnoughOfHighest;
  for (const auto& [rank, own] : known.ranks) {
    measured.energy_j += least ? std::ranges::min(own.energies_j) : median(own.energies_j);
    measured.time_s = std::max(measured.time_s, median(own.times_s));
  }
  return measured;
}

void IterationEnergyMeter::forget_before(std::int64_t version) {
  std::erase_if(versions_, [&](const auto& entry) { return entry.first != 0 && entry.first < version; });
}

}  // namespace perseus::jobs
