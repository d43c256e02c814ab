// NVML's functions over simulated GPUs: a library that code written for NVML loads in its place.
//
// The driver's version contains "simulated", and so does the name of each GPU unless its creator chose another.
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
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "devices.h"
#include "training/device/nvml_codes.h"
#include "training/device/pci_bus_id.h"

#define NVML_API extern "C" __attribute__((visibility("default")))

using namespace perseus;
using namespace perseus::nvml_simulated;
using device::nvml_code::kSuccess;

namespace {

constexpr unsigned kMemoryClock_mhz = 1593;
constexpr std::string_view kDriverVersion = "simulated";
constexpr std::string_view kNvmlVersion = "13.simulated";

unsigned milliwatts(Watts power) { return static_cast<unsigned>(std::lround(power.value() * 1000)); }
unsigned long long millijoules(Joules energy) { return static_cast<unsigned long long>(energy.value() * 1000); }
long long unix_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int put(std::string_view text, char* to, unsigned size) {
  if (to == nullptr) return device::nvml_code::kInvalidArgument;
  if (text.size() >= size) return device::nvml_code::kInsufficientSize;
  std::memcpy(to, text.data(), text.size());
  to[text.size()] = '\0';
  return kSuccess;
}

template <class T, class V>
int put(T* to, V value) {
  if (to == nullptr) return device::nvml_code::kInvalidArgument;
  *to = static_cast<T>(value);
  return kSuccess;
}

/// NVML's lists: `count` is the capacity on input and the length on output.
template <class T>
int put(const std::vector<T>& list, unsigned* count, T* to) {
  if (count == nullptr) return device::nvml_code::kInvalidArgument;
  const unsigned room = *count;
  *count = static_cast<unsigned>(list.size());
  if (list.empty()) return kSuccess;
  if (room < list.size() || to == nullptr) return device::nvml_code::kInsufficientSize;
  std::ranges::copy(list, to);
  return kSuccess;
}

/// The checks at the begin of every function about a GPU: initialized, a valid GPU, no injected fault; then calls
/// `f`.
template <class F>
int with(const char* function, device::nvml::Device handle, F f) {
  if (!devices().begun()) return device::nvml_code::kUninitialized;
  NvmlDevice* device = devices().find(handle);
  if (device == nullptr) return device::nvml_code::kInvalidArgument;
  if (!device->driver) return device::nvml_code::kGpuIsLost;
  if (const int code = device->driver->fault(function); code != kSuccess) return code;
  return f(*device->driver);
}

/// The same for functions about no GPU.
template <class F>
int without(const char* function, F f) {
  if (!devices().begun()) return device::nvml_code::kUninitialized;
  if (const int code = devices().fault(function); code != kSuccess) return code;
  return f();
}

template <class F>
int find_device(const char* function, device::nvml::Device* to, F is_it) {
  return without(function, [&]() -> int {
    for (NvmlDevice* device : devices().list()) {
      if (device->driver && is_it(*device->driver)) return put(to, device->handle());
    }
    return device::nvml_code::kNotFound;
  });
}

unsigned long long event_reasons(simulated_gpu::SimulatedDriver& gpu) {
  return (gpu.idle() ? device::nvml::reason_idle : 0ULL) | (gpu.power_capped() ? device::nvml::reason_power_cap : 0ULL);
}

unsigned clock_of(simulated_gpu::SimulatedDriver& gpu, int type) {
  return type == device::nvml::clock_memory ? kMemoryClock_mhz : static_cast<unsigned>(gpu.clock().value());
}

bool is_clock_type(int type) { return type >= device::nvml::clock_graphics && type <= device::nvml::clock_video; }

std::vector<device::nvml::ProcessInfo> processes_of(simulated_gpu::SimulatedDriver& gpu) {
  std::vector<device::nvml::ProcessInfo> list;
  for (const int process : gpu.processes()) {
    list.push_back({static_cast<unsigned>(process), 0, 0xffffffff, 0xffffffff});
  }
  return list;
}

constexpr unsigned kLeastLimit_mw = 100'000;
unsigned most_limit_mw(const simulated_gpu::SimulatedDriver& gpu) {
  return std::max(kLeastLimit_mw, milliwatts(gpu.default_power_limit()));
}

int set_limit(simulated_gpu::SimulatedDriver& gpu, unsigned limit_mw) {
  if (limit_mw < kLeastLimit_mw || limit_mw > most_limit_mw(gpu)) return device::nvml_code::kInvalidArgument;
  return gpu.set_power_limit(Watts(limit_mw / 1000.0));
}

void put_number(device::nvml::FieldValue& field, unsigned number) {
  field.valueType = device::nvml::type_uint;
  field.value.ui = number;
}
void put_number(device::nvml::FieldValue& field, unsigned long long number) {
  field.valueType = device::nvml::type_ull;
  field.value.ull = number;
}

void fill(simulated_gpu::SimulatedDriver& gpu, device::nvml::FieldValue& field) {
  const unsigned scope = field.scopeId;
  field.timestamp = unix_us();
  field.latencyUsec = 0;
  field.nvmlReturn = kSuccess;
  field.value.ull = 0;
  switch (field.fieldId) {
    case device::nvml::field_total_energy:
    case device::nvml::field_energy:
      put_number(field, millijoules(gpu.counter()));
      break;
    case device::nvml::field_power_average:
      put_number(field, milliwatts(gpu.average_power()));
      break;
    case device::nvml::field_power_instant:
      put_number(field, milliwatts(gpu.power()));
      break;
    case device::nvml::field_power_min_limit:
      put_number(field, kLeastLimit_mw);
      break;
    case device::nvml::field_power_max_limit:
      put_number(field, most_limit_mw(gpu));
      break;
    case device::nvml::field_power_default_limit:
      put_number(field, milliwatts(gpu.default_power_limit()));
      break;
    case device::nvml::field_power_current_limit:
    case device::nvml::field_power_requested_limit:
      put_number(field, milliwatts(gpu.power_limit()));
      break;
    case device::nvml::field_time_below_power_cap:
      put_number(field, static_cast<unsigned long long>(gpu.power_capped_for().value() * 1e9));
      break;
    case device::nvml::field_power_smoothing:
      put_number(field, gpu.power_smoothing() ? 1U : 0U);
      break;
    default:
      field.nvmlReturn = device::nvml_code::kNotSupported;
  }
  const bool has_scope = field.fieldId == device::nvml::field_energy ||
                         field.fieldId == device::nvml::field_power_average ||
                         field.fieldId == device::nvml::field_power_instant;
  if (has_scope && scope != device::nvml::scope_gpu) field.nvmlReturn = device::nvml_code::kNotSupported;
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

// Energy and power.

NVML_API int nvmlDeviceGetTotalEnergyConsumption(device::nvml::Device device, unsigned long long* energy_mj) {
  return with(__func__, device,
              [&](simulated_gpu::SimulatedDriver& gpu) { return put(energy_mj, millijoules(gpu.counter())); });
}
NVML_API int nvmlDeviceGetPowerUsage(device::nvml::Device device, unsigned* power_mw) {
  return with(__func__, device,
              [&](simulated_gpu::SimulatedDriver& gpu) { return put(power_mw, milliwatts(gpu.average_power())); });
}
NVML_API int nvmlDeviceGetFieldValues(device::nvml::Device device, int count, device::nvml::FieldValue* fields) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    if (count < 1 || fields == nullptr) return device::nvml_code::kInvalidArgument;
    for (int i = 0; i < count; ++i) fill(gpu, fields[i]);
    return kSuccess;
  });
}
NVML_API int nvmlDeviceGetSamples(device::nvml::Device device, int type, unsigned long long after_us, int* value_type,
                                  unsigned* count, device::nvml::Sample* samples) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    constexpr int total_power = 0, room = 120;
    if (type != total_power) return device::nvml_code::kNotSupported;
    if (count == nullptr || value_type == nullptr) return device::nvml_code::kInvalidArgument;
    *value_type = device::nvml::type_uint;
    std::vector<device::nvml::Sample> list;
    const double to_unix_s = static_cast<double>(unix_us()) * 1e-6 - gpu.now_s();
    for (const auto& [end_s, power] : gpu.power_samples(Seconds(0.02), room)) {
      device::nvml::Sample sample{static_cast<unsigned long long>((end_s + to_unix_s) * 1e6), {}};
      sample.value.ui = milliwatts(power);
      if (sample.timeStampUs > after_us) list.push_back(sample);
    }
    if (samples == nullptr) {
      *count = room;
      return kSuccess;
    }
    if (list.empty()) return device::nvml_code::kNotFound;
    return put(list, count, samples);
  });
}
NVML_API int nvmlDeviceGetPowerManagementLimit(device::nvml::Device device, unsigned* limit_mw) {
  return with(__func__, device,
              [&](simulated_gpu::SimulatedDriver& gpu) { return put(limit_mw, milliwatts(gpu.power_limit())); });
}
NVML_API int nvmlDeviceGetEnforcedPowerLimit(device::nvml::Device device, unsigned* limit_mw) {
  return with(__func__, device,
              [&](simulated_gpu::SimulatedDriver& gpu) { return put(limit_mw, milliwatts(gpu.power_limit())); });
}
NVML_API int nvmlDeviceGetPowerManagementDefaultLimit(device::nvml::Device device, unsigned* limit_mw) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) {
    return put(limit_mw, milliwatts(gpu.default_power_limit()));
  });
}
NVML_API int nvmlDeviceGetPowerManagementLimitConstraints(device::nvml::Device device, unsigned* least_mw,
                                                          unsigned* most_mw) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) {
    return std::max(put(least_mw, kLeastLimit_mw), put(most_mw, most_limit_mw(gpu)));
  });
}
NVML_API int nvmlDeviceGetPowerManagementMode(device::nvml::Device device, int* mode) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver&) { return put(mode, 1); });
}
NVML_API int nvmlDeviceSetPowerManagementLimit(device::nvml::Device device, unsigned limit_mw) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) { return set_limit(gpu, limit_mw); });
}
NVML_API int nvmlDeviceSetPowerManagementLimit_v2(device::nvml::Device device, device::nvml::PowerValue* limit) {
  return with(__func__, device, [&](simulated_gpu::SimulatedDriver& gpu) -> int {
    constexpr unsigned version = 0x0200000C;
    constexpr int other_version = 25;
    if (limit == nullptr) return device::nvml_code::kInvalidArgument;
    if (limit->version != version) return other_version;
    if (limit->powerScope != device::nvml::scope_gpu) return device::nvml_code::kNotSupported;
    return set_limit(gpu, limit->powerValueMw);
  });
}

// Clocks.

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
