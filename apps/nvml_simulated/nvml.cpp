// NVML's functions over simulated GPUs: a library that code written for NVML loads in its place.
//
// The driver's version contains "simulated", and so does the name of each GPU unless its creator chose another. This
// file has the library itself, the list of GPUs and queries of all kinds; nvml_power.cpp and nvml_clocks.cpp have the
// rest.
//
// Problem: code that calls the driver, ours and others', must run unchanged on a machine without a GPU, and see the
//          consequences of its settings.
// Input:   NVML's calls, in NVML's units (mW, mJ, us).
// Output:  NVML's codes, values and two-call patterns; exports only nvml*.
// Errors:  those of a driver (no permission, no such GPU, bad arguments), and those injected for the function
//          (simulated_gpu.h).
// Cost:    a lock and some hundred nanoseconds.
// Threads: any.
// Source:  NVML API 13; the functions are those that this system and NVML's Python bindings use.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvml_call.h"
#include "training/device/pci_bus_id.h"

using namespace perseus;
using namespace perseus::nvml_simulated;

namespace {

constexpr std::string_view kDriverVersion = "simulated";
constexpr std::string_view kNvmlVersion = "13.simulated";

template <class F>
int find_device(const char* function, device::nvml::Device* to, F is_it) {
  return without(function, [&]() -> int {
    for (NvmlDevice* device : devices().list()) {
      if (device->driver && is_it(*device->driver)) return put(to, device->handle());
    }
    return device::nvml_code::kNotFound;
  });
}

std::vector<device::nvml::ProcessInfo> processes_of(simulated_gpu::SimulatedDriver& gpu) {
  std::vector<device::nvml::ProcessInfo> list;
  for (const int process : gpu.processes()) {
    list.push_back({static_cast<unsigned>(process), 0, 0xffffffff, 0xffffffff});
  }
  return list;
}

}  // namespace

// The library.

NVML_API int nvmlInit_v2() { return devices().begin(); }
NVML_API int nvmlInit() { return devices().begin(); }
NVML_API int nvmlInitWithFlags(unsigned) { return devices().begin(); }
NVML_API int nvmlShutdown() { return devices().end(); }
NVML_API const char* nvmlErrorString(int code) {
  // nvml_words() are string literals.
  return code == kSuccess ? "Success" : device::nvml_words(code).data();
}
NVML_API int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  return without(__func__, [&] { return put(kDriverVersion, version, size); });
}
NVML_API int nvmlSystemGetNVMLVersion(char* version, unsigned size) {
  return without(__func__, [&] { return put(kNvmlVersion, version, size); });
}
NVML_API int nvmlSystemGetCudaDriverVersion(int* version) {
  return without(__func__, [&] { return put(version, 13000); });
}
NVML_API int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return without(__func__, [&] { return put(version, 13000); });
}
NVML_API int nvmlSystemGetProcessName(unsigned, char* name, unsigned size) {
  return without(__func__, [&] { return put("", name, size); });
}

// Enumeration of GPUs.

NVML_API int nvmlDeviceGetCount_v2(unsigned* count) {
  return without(__func__, [&] { return put(count, devices().list().size()); });
}
NVML_API int nvmlDeviceGetCount(unsigned* count) {
  return without(__func__, [&] { return put(count, devices().list().size()); });
}
NVML_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, device::nvml::Device* handle) {
  return without(__func__, [&]() -> int {
    const auto list = devices().list();
    if (index >= list.size()) return device::nvml_code::kInvalidArgument;
    if (!list[index]->driver) return device::nvml_code::kGpuIsLost;
    return put(handle, list[index]->handle());
  });
}
NVML_API int nvmlDeviceGetHandleByIndex(unsigned index, device::nvml::Device* handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}
NVML_API int nvmlDeviceGetHandleByUUID(const char* uuid, device::nvml::Device* handle) {
  if (uuid == nullptr) return device::nvml_code::kInvalidArgument;
  return find_device(__func__, handle, [&](const simulated_gpu::SimulatedDriver& gpu) { return gpu.uuid() == uuid; });
}
NVML_API int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, device::nvml::Device* handle) {
  const auto wanted = bus_id == nullptr ? std::nullopt : device::parse_pci_bus_id(bus_id);
  if (!wanted) return device::nvml_code::kInvalidArgument;
  return find_device(__func__, handle, [&](const simulated_gpu::SimulatedDriver& gpu) {
    return device::parse_pci_bus_id(gpu.pci_bus_id()) == wanted;
  });
}
NVML_API int nvmlDeviceGetHandleByPciBusId(const char* bus_id, device::nvml::Device* handle) {
  return nvmlDeviceGetHandleByPciBusId_v2(bus_id, handle);
}
NVML_API int nvmlDeviceGetIndex(device::nvml::Device device, unsigned* index) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) {
    const auto list = devices().list();
    return put(index, std::ranges::find(list, devices().find(device)) - list.begin());
  });
}
NVML_API int nvmlDeviceGetMinorNumber(device::nvml::Device device, unsigned* number) {
  return nvmlDeviceGetIndex(device, number);
}
NVML_API int nvmlDeviceGetUUID(device::nvml::Device device, char* uuid, unsigned size) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) { return put(gpu.uuid(), uuid, size); });
}
NVML_API int nvmlDeviceGetName(device::nvml::Device device, char* name, unsigned size) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) { return put(gpu.name(), name, size); });
}
NVML_API int nvmlDeviceGetPciInfo_v3(device::nvml::Device device, device::nvml::PciInfo* pci) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    if (pci == nullptr) return device::nvml_code::kInvalidArgument;
    *pci = {};
    const device::PciBusId id = device::parse_pci_bus_id(gpu.pci_bus_id()).value_or(device::PciBusId{});
    pci->domain = id.domain;
    pci->bus = id.bus;
    pci->device = id.device;
    put(fmt::format("{:08X}:{:02X}:{:02X}.{:X}", id.domain, id.bus, id.device, id.function), pci->busId,
        sizeof pci->busId);
    return put(fmt::format("{:04X}:{:02X}:{:02X}.{:X}", id.domain & 0xffff, id.bus, id.device, id.function),
               pci->busIdLegacy, sizeof pci->busIdLegacy);
  });
}
NVML_API int nvmlDeviceGetArchitecture(device::nvml::Device device, unsigned* architecture) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) {
    constexpr std::array<std::pair<std::string_view, unsigned>, 7> numbers{
        {{"Volta", 5}, {"Turing", 6}, {"Ampere", 7}, {"Ada", 8}, {"Hopper", 9}, {"Blackwell", 10}, {"Rubin", 13}}};
    constexpr unsigned unknown = 0xffffffff;
    const std::string name = gpu.architecture();
    const auto* found = std::ranges::find_if(numbers, [&](const auto& number) { return number.first == name; });
    return put(architecture, found == numbers.end() ? unknown : found->second);
  });
}
NVML_API int nvmlDeviceGetCudaComputeCapability(device::nvml::Device device, int* major, int* minor) {
  return with(__func__, device,
              [&](simulated_gpu::SimulatedDriver&) { return std::max(put(major, 8), put(minor, 0)); });
}
NVML_API int nvmlDeviceGetMigMode(device::nvml::Device device, unsigned* now, unsigned* pending) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) {
    return std::max(put(now, gpu.mig()), put(pending, gpu.mig()));
  });
}
NVML_API int nvmlDeviceIsMigDeviceHandle(device::nvml::Device device, unsigned* is_slice) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) { return put(is_slice, 0U); });
}
NVML_API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device::nvml::Device device, device::nvml::Device*) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) { return device::nvml_code::kInvalidArgument; });
}

// All other queries of its users.

NVML_API int nvmlDeviceGetPersistenceMode(device::nvml::Device device, int* mode) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) { return put(mode, gpu.persistence()); });
}
NVML_API int nvmlDeviceSetPersistenceMode(device::nvml::Device device, int mode) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) { return gpu.set_persistence(mode != 0); });
}
NVML_API int nvmlDeviceGetComputeRunningProcesses_v3(device::nvml::Device device, unsigned* count,
                                                     device::nvml::ProcessInfo* list) {
  return with(__func__, device,
              [&](simulated_gpu::SimulatedDriver& gpu) { return put(processes_of(gpu), count, list); });
}
NVML_API int nvmlDeviceGetComputeRunningProcesses_v2(device::nvml::Device device, unsigned* count,
                                                     device::nvml::ProcessInfo* list) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, list);
}
NVML_API int nvmlDeviceGetGraphicsRunningProcesses_v3(device::nvml::Device device, unsigned* count,
                                                      device::nvml::ProcessInfo* list) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) {
    return put(std::vector<device::nvml::ProcessInfo>(), count, list);
  });
}
NVML_API int nvmlDeviceGetPerformanceState(device::nvml::Device device, int* state) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) { return put(state, 0); });
}
NVML_API int nvmlDeviceGetPowerState(device::nvml::Device device, int* state) {
  return nvmlDeviceGetPerformanceState(device, state);
}
NVML_API int nvmlDeviceGetTemperature(device::nvml::Device device, int, unsigned* celsius) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) { return put(celsius, 40U); });
}
NVML_API int nvmlDeviceGetUtilizationRates(device::nvml::Device device, unsigned* gpu_and_memory_pct) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    if (gpu_and_memory_pct == nullptr) return device::nvml_code::kInvalidArgument;
    gpu_and_memory_pct[0] = gpu.idle() ? 0 : 100;
    gpu_and_memory_pct[1] = 0;
    return kSuccess;
  });
}
NVML_API int nvmlDeviceGetMemoryInfo(device::nvml::Device device, unsigned long long* total_free_used) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) -> int {
    if (total_free_used == nullptr) return device::nvml_code::kInvalidArgument;
    constexpr unsigned long long bytes = 80ULL << 30U;
    total_free_used[0] = total_free_used[1] = bytes;
    total_free_used[2] = 0;
    return kSuccess;
  });
}
