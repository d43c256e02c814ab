// A simulated GPU's file, for tests in Python.
//
// usage: perseus_simulated_gpu create PATH MHZ...    with these clocks, highest first
//        perseus_simulated_gpu show PATH             prints "1500 MHz, locked" or "1500 MHz, free"
#include "simulation/simulated_gpu/simulated_gpu.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

int failed(const perseus::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  if (std::string_view(arguments[1]) == "create") {
    perseus::simulated_gpu::SimulatedGpuSpec spec;
    for (int i = 3; i < count; ++i) spec.clocks.emplace_back(std::atoi(arguments[i]));
    spec.blocking_power.assign(spec.clocks.size(), perseus::Watts(90));
    const auto gpu = perseus::simulated_gpu::SimulatedGpu::create(arguments[2], spec);
    return gpu ? 0 : failed(gpu.error());
  }
  const auto gpu = perseus::simulated_gpu::SimulatedGpu::attach(arguments[2]);
  if (!gpu) return failed(gpu.error());
  std::printf("%d MHz, %s\n", static_cast<int>((*gpu)->clock().value()), (*gpu)->locked() ? "locked" : "free");
  return 0;
}
