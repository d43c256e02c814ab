// Profiles of invented GPUs for tests of profiling: times and powers as functions of the clock, with steps.
#pragma once

#include <cmath>
#include <random>

#include "planning/model/profile.h"

namespace perseus::testing {

struct InventedGpu {
  int stages = 3;
  int clocks = 12;         ///< from 1400 MHz down by 50
  double steps = 0.003;    ///< deviation of each clock from a smooth curve, the same in all stages
  double different = 0.2;  ///< relative difference in size between stages
  double time = 1;         ///< factor on the time of every computation
  double power = 1;
};

/// Forward and backward of every stage: time a + b / f, power c + d f^3.
inline model::Profile invented_profile(const InventedGpu& gpu, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto within = [&](double size) { return 1 + size * (2 * static_cast<double>(engine() >> 11) * 0x1p-53 - 1); };
  model::Profile profile;
  profile.accelerators.assign(gpu.stages, 1);
  std::vector<std::pair<double, double>> steps(2 * static_cast<std::size_t>(gpu.clocks));
  for (auto& [time, energy] : steps) time = within(gpu.steps), energy = within(gpu.steps);
  for (int stage = 0; stage < gpu.stages; ++stage) {
    const double size = within(gpu.different);
    for (const bool backward : {false, true}) {
      model::ProfileEntry entry{stage, backward ? "backward" : "forward", {}};
      for (int c = 0; c < gpu.clocks; ++c) {
        const int mhz = 1400 - 50 * c;
        const double f = mhz / 1400.0;
        const auto& [time_step, energy_step] = steps[static_cast<std::size_t>(c + (backward ? gpu.clocks : 0))];
        const double time = gpu.time * size * (backward ? 0.1 : 0.05) * (0.3 + 0.7 / f) * time_step;
        const double power = gpu.power * ((backward ? 130 : 120) + 250 * f * f * f);
        entry.measurements.push_back({Megahertz(mhz), Seconds(time), Joules(time * power * energy_step), {}, {}, 1});
      }
      profile.entries.push_back(std::move(entry));
    }
  }
  return profile;
}

}  // namespace perseus::testing
