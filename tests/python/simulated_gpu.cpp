// A simulated GPU's file, for tests in Python.
//
// usage: perseus_simulated_gpu create PATH MHZ...    with these clocks, highest first; named as GPU_NAME in the
//                                                    environment
//        perseus_simulated_gpu show PATH             prints "1500 MHz, locked" or "1500 MHz, free"
//        perseus_simulated_gpu guard PATH            the next call of each setter fails
//        perseus_simulated_gpu setters PATH          prints the setters that were called since
#include "simulation/simulated_gpu/simulated_gpu.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "simulation/simulated_gpu/simulated_driver.h"

namespace {

constexpr std::array kSetters{"nvmlDeviceSetGpuLockedClocks",      "nvmlDeviceResetGpuLockedClocks",
                              "nvmlDeviceSetMemoryLockedClocks",   "nvmlDeviceResetMemoryLockedClocks",
                              "nvmlDeviceSetApplicationsClocks",   "nvmlDeviceResetApplicationsClocks",
                              "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetPersistenceMode"};
constexpr int kUnknownError = 999;

int failed(const perseus::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 2;
  if (std::string_view(arguments[1]) == "create") {
    perseus::simulated_gpu::SimulatedGpuSpec spec;
    if (const char* name = std::getenv("GPU_NAME")) spec.name = name;
    for (int i = 3; i < count; ++i) spec.clocks.emplace_back(std::atoi(arguments[i]));
    spec.blocking_power.assign(spec.clocks.size(), perseus::Watts(90));
    const auto gpu = perseus::simulated_gpu::SimulatedGpu::create(arguments[2], spec);
    return gpu ? 0 : failed(gpu.error());
  }
  if (std::string_view(arguments[1]) == "setters") {
    const auto driver = perseus::simulated_gpu::SimulatedDriver::attach(arguments[2]);
    if (!driver) return failed(driver.error());
    for (const char* setter : kSetters) {
      if ((*driver)->fault(setter) != kUnknownError) std::printf("%s\n", setter);
    }
    return 0;
  }
  const auto gpu = perseus::simulated_gpu::SimulatedGpu::attach(arguments[2]);
  if (gpu && std::string_view(arguments[1]) == "guard") {
    for (const char* setter : kSetters) (*gpu)->inject(setter, kUnknownError, 1);
    return 0;
  }
  if (!gpu) return failed(gpu.error());
  std::printf("%d MHz, %s\n", static_cast<int>((*gpu)->clock().value()), (*gpu)->locked() ? "locked" : "free");
  return 0;
}
