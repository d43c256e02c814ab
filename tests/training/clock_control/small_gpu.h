// The simulated GPU of these tests: three clocks, one computation.
#pragma once

#include "simulation/simulated_gpu/simulated_gpu.h"

namespace perseus::clock_control {

inline simulated_gpu::SimulatedGpuSpec small_gpu() {
  simulated_gpu::SimulatedGpuSpec spec;
  spec.clocks = {Megahertz(1400), Megahertz(700), Megahertz(350)};
  spec.computations = {{"forward", {Seconds(1), Seconds(2), Seconds(4)}, {Watts(400), Watts(200), Watts(100)}}};
  spec.blocking_power = {Watts(80), Watts(70), Watts(60)};
  spec.power_limit = spec.default_power_limit = Watts(500);
  return spec;
}

}  // namespace perseus::clock_control
