#include "server/energy_meter.h"

#include <algorithm>
#include <cmath>

namespace perseus::server {

void EnergyMeter::report(std::int64_t version, int rank, const std::vector<Joules>& energies,
                         const std::vector<Seconds>& times) {
  OfRank& own = versions_[version].ranks[rank];
  for (std::size_t i = 0; i < std::min(energies.size(), times.size()); ++i) {
    const double energy_j = energies[i].value(), time_s = times[i].value();
    if (!(std::isfinite(energy_j) && energy_j > 0 && std::isfinite(time_s) && time_s > 0)) continue;
    ++own.iterations;
    own.energy_j += energy_j;
    own.time_s += time_s;
  }
}

std::optional<EnergyMeasured> EnergyMeter::take(std::int64_t version, int ranks) {
  OfVersion& known = versions_[version];
  if (static_cast<int>(known.ranks.size()) < ranks) return std::nullopt;
  const auto fewest = std::ranges::min_element(known.ranks, {}, [](const auto& one) {
                        return one.second.iterations;
                      })->second.iterations;
  if (fewest < std::max<std::int64_t>(1, 2 * known.taken)) return std::nullopt;
  known.taken = fewest;
  EnergyMeasured measured{version, fewest, 0, 0};
  for (const auto& [rank, own] : known.ranks) {
    const auto n = static_cast<double>(own.iterations);
    measured.energy_j += own.energy_j / n;
    measured.time_s = std::max(measured.time_s, own.time_s / n);
  }
  return measured;
}

void EnergyMeter::forget_before(std::int64_t version) {
  std::erase_if(versions_, [&](const auto& entry) { return entry.first != 0 && entry.first < version; });
}

}  // namespace perseus::server
