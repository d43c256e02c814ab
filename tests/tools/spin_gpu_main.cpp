// spin_gpu FILE: makes a simulated GPU whose computations are the kernels of tools/measure_gpu.
#include <cstdio>
#include <string>

#include "simulation/simulated_gpu/simulated_gpu.h"

int main(int count, char** arguments) {
  if (count != 2) return 64;
  perseus::simulated_gpu::SimulatedGpuSpec spec;
  spec.clocks = {perseus::Megahertz(1400), perseus::Megahertz(700)};
  for (const int us : {20, 200, 1000, 5000, 20'000, 40'000}) {
    const double time_s = 1e-6 * us;
    spec.computations.push_back({"spin_" + std::to_string(us),
                                 {perseus::Seconds(time_s), perseus::Seconds(2 * time_s)},
                                 {perseus::Watts(400), perseus::Watts(200)}});
  }
  spec.blocking_power = {perseus::Watts(80), perseus::Watts(70)};
  spec.power_limit = spec.default_power_limit = perseus::Watts(500);
  const auto made = perseus::simulated_gpu::SimulatedGpu::create(arguments[1], spec);
  if (!made) std::fprintf(stderr, "%s\n", made.error().message.c_str());
  return made ? 0 : 1;
}
