// NVML's functions about clocks over simulated GPUs: supported and current clocks, locks, reasons of lower clocks.
#include <algorithm>
#include <vector>

#include "nvml_call.h"

using namespace perseus;
using namespace perseus::nvml_simulated;

namespace {

constexpr unsigned kMemoryClock_mhz = 1593;

unsigned long long event_reasons(simulated_gpu::SimulatedDriver& gpu) {
  return (gpu.idle() ? device::nvml::reason_idle : 0ULL) | (gpu.power_capped() ? device::nvml::reason_power_cap : 0ULL);
}

unsigned clock_of(simulated_gpu::SimulatedDriver& gpu, int type) {
  return type == device::nvml::clock_memory ? kMemoryClock_mhz : static_cast<unsigned>(gpu.clock().value());
}

bool is_clock_type(int type) { return type >= device::nvml::clock_graphics && type <= device::nvml::clock_video; }

}  // namespace

NVML_API int nvmlDeviceGetSupportedMemoryClocks(device::nvml::Device device, unsigned* count, unsigned* clocks_mhz) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) {
    return put(std::vector<unsigned>{kMemoryClock_mhz}, count, clocks_mhz);
  });
}
NVML_API int nvmlDeviceGetSupportedGraphicsClocks(device::nvml::Device device, unsigned memory_mhz, unsigned* count,
                                                  unsigned* clocks_mhz) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    if (memory_mhz != kMemoryClock_mhz) return device::nvml_code::kNotFound;
    std::vector<unsigned> list;
    for (const Megahertz clock : gpu.clocks()) list.push_back(static_cast<unsigned>(clock.value()));
    return put(list, count, clocks_mhz);
  });
}
NVML_API int nvmlDeviceGetClockInfo(device::nvml::Device device, int type, unsigned* clock_mhz) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    if (!is_clock_type(type)) return device::nvml_code::kInvalidArgument;
    return put(clock_mhz, clock_of(gpu, type));
  });
}
NVML_API int nvmlDeviceGetMaxClockInfo(device::nvml::Device device, int type, unsigned* clock_mhz) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    if (!is_clock_type(type)) return device::nvml_code::kInvalidArgument;
    return put(clock_mhz, type == device::nvml::clock_memory ? kMemoryClock_mhz
                                                             : static_cast<unsigned>(gpu.clocks().front().value()));
  });
}
NVML_API int nvmlDeviceGetMinMaxClockOfPState(device::nvml::Device device, int type, int state, unsigned* least_mhz,
                                              unsigned* most_mhz) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    if (!is_clock_type(type) || state != 0) return device::nvml_code::kInvalidArgument;
    const bool memory = type == device::nvml::clock_memory;
    const auto mhz = [&](Megahertz clock) { return memory ? kMemoryClock_mhz : static_cast<unsigned>(clock.value()); };
    return std::max(put(least_mhz, mhz(gpu.clocks().back())), put(most_mhz, mhz(gpu.clocks().front())));
  });
}
NVML_API int nvmlDeviceGetClock(device::nvml::Device device, int type, int which, unsigned* clock_mhz) {
  constexpr int current = 0;
  if (which != current) return device::nvml_code::kNotSupported;
  return nvmlDeviceGetClockInfo(device, type, clock_mhz);
}
NVML_API int nvmlDeviceGetCurrentClocksEventReasons(device::nvml::Device device, unsigned long long* reasons) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) { return put(reasons, event_reasons(gpu)); });
}
NVML_API int nvmlDeviceGetCurrentClocksThrottleReasons(device::nvml::Device device, unsigned long long* reasons) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) { return put(reasons, event_reasons(gpu)); });
}
NVML_API int nvmlDeviceGetSupportedClocksEventReasons(device::nvml::Device device, unsigned long long* reasons) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) {
    return put(reasons, device::nvml::reason_idle | device::nvml::reason_power_cap);
  });
}
NVML_API int nvmlDeviceGetSupportedClocksThrottleReasons(device::nvml::Device device, unsigned long long* reasons) {
  return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}
NVML_API int nvmlDeviceSetGpuLockedClocks(device::nvml::Device device, unsigned least_mhz, unsigned most_mhz) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    constexpr unsigned symbolic = 0xffffff00, most_number = 100'000;
    const bool least_symbolic = least_mhz > symbolic, most_symbolic = most_mhz > symbolic;
    if (least_symbolic && most_symbolic) {  // TDP, UNLIMITED: the highest
      const Megahertz highest = gpu.clocks().front();
      return gpu.lock_clocks(highest, highest);
    }
    if (least_mhz > most_number || most_mhz > most_number) return device::nvml_code::kInvalidArgument;
    return gpu.lock_clocks(Megahertz(static_cast<int>(least_mhz)), Megahertz(static_cast<int>(most_mhz)));
  });
}
NVML_API int nvmlDeviceResetGpuLockedClocks(device::nvml::Device device) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) { return gpu.unlock_clocks(); });
}
// As on data-center parts: the memory's clock is fixed.
NVML_API int nvmlDeviceSetMemoryLockedClocks(device::nvml::Device device, unsigned, unsigned) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) { return device::nvml_code::kNotSupported; });
}
NVML_API int nvmlDeviceResetMemoryLockedClocks(device::nvml::Device device) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) { return device::nvml_code::kNotSupported; });
}
NVML_API int nvmlDeviceGetApplicationsClock(device::nvml::Device device, int type, unsigned* clock_mhz) {
  return nvmlDeviceGetMaxClockInfo(device, type, clock_mhz);
}
NVML_API int nvmlDeviceSetApplicationsClocks(device::nvml::Device device, unsigned, unsigned) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) { return device::nvml_code::kNotSupported; });
}
NVML_API int nvmlDeviceResetApplicationsClocks(device::nvml::Device device) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) { return device::nvml_code::kNotSupported; });
}
NVML_API int nvmlDeviceGetAPIRestriction(device::nvml::Device device, int, int* restricted) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) { return put(restricted, 1); });
}
