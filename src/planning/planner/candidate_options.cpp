#include "planning/planner/candidate_options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace perseus::planner {

std::int64_t floor_to_units(Seconds time, Seconds unit) {
  return static_cast<std::int64_t>(std::floor(time / unit * (1 + 1e-12)));
}

std::vector<CandidateOption> candidate_options(const std::vector<model::Measurement>& measurements, Seconds unit) {
  std::vector<int> by_time(measurements.size());
  std::iota(by_time.begin(), by_time.end(), 0);
  std::ranges::sort(by_time, {}, [&](int k) { return measurements[k].time; });
  std::vector<CandidateOption> candidates;
  Joules least_of_faster(std::numeric_limits<double>::infinity());
  for (auto first = by_time.begin(); first != by_time.end();) {
    const Seconds time = measurements[*first].time;
    Joules least = least_of_faster;
    for (; first != by_time.end() && measurements[*first].time == time; ++first) {
      const Joules energy = measurements[*first].energy;
      if (least_of_faster < energy) continue;
      candidates.push_back({*first, floor_to_units(time, unit)});
      least = std::min(least, energy);
    }
    least_of_faster = least;
  }
  std::ranges::sort(candidates, [&](const CandidateOption& a, const CandidateOption& b) {
    if (a.units != b.units) return a.units > b.units;
    const Joules energy_a = measurements[a.option].energy, energy_b = measurements[b.option].energy;
    return energy_a != energy_b ? energy_a > energy_b : a.option < b.option;
  });
  const auto same_units = [](const CandidateOption& a, const CandidateOption& b) { return a.units == b.units; };
  candidates.erase(std::unique(candidates.begin(), candidates.end(), same_units), candidates.end());
  return candidates;
}

}  // namespace perseus::planner
