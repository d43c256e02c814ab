// NVML's functions over simulated GPUs: a library that code written for NVML loads in its place.
//
// Problem: the code that talks to the driver, ours and others', must run unchanged on a machine without a GPU, and see
// the consequences of what it sets. Input: NVML's calls, in NVML's units (mW, mJ, us). Output: NVML's codes, values and
// two-call patterns; nothing but nvml* is exported. Errors: those that a driver has (no permission, no such GPU, bad
// arguments), and those that were injected for the function (simulated_gpu.h). Cost: a lock and some hundred
// nanoseconds. Threads: any. Source: NVML API 13; the functions are those that this system and NVML's Python bindings
// use. The driver's version says "simulated", and so does the name of each GPU unless its maker gave it another.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "device/nvml_codes.h"
#include "device/pci_bus_id.h"
#include "devices.h"

#define NVML_API extern "C" __attribute__((visibility("default")))

using namespace perseus;
using namespace perseus::nvml_simulated;
using nvml_code::success;

namespace {

constexpr unsigned memory_clock_mhz = 1593;
constexpr std::string_view driver_version = "simulated";
constexpr std::string_view nvml_version = "13.simulated";

unsigned milliwatts(Watts power) { return static_cast<unsigned>(std::lround(power.value() * 1000)); }
unsigned long long millijoules(Joules energy) { return static_cast<unsigned long long>(energy.value() * 1000); }
long long unix_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int put(std::string_view text, char* to, unsigned size) {
  if (to == nullptr) return nvml_code::invalid_argument;
  if (text.size() >= size) return nvml_code::insufficient_size;
  std::memcpy(to, text.data(), text.size());
  to[text.size()] = '\0';
  return success;
}

template <class T, class V>
int put(T* to, V value) {
  if (to == nullptr) return nvml_code::invalid_argument;
  *to = static_cast<T>(value);
  return success;
}

/// NVML's lists: `count` is the room on the way in and the length on the way out.
template <class T>
int put(const std::vector<T>& list, unsigned* count, T* to) {
  if (count == nullptr) return nvml_code::invalid_argument;
  const unsigned room = *count;
  *count = static_cast<unsigned>(list.size());
  if (list.empty()) return success;
  if (room < list.size() || to == nullptr) return nvml_code::insufficient_size;
  std::ranges::copy(list, to);
  return success;
}

/// What every function about a GPU begins with: initialised, a GPU, no fault injected; then `f`.
template <class F>
int with(const char* function, nvml::Device handle, F f) {
  if (!devices().begun()) return nvml_code::uninitialised;
  SimulatedDevice* device = devices().find(handle);
  if (device == nullptr) return nvml_code::invalid_argument;
  if (!device->driver) return nvml_code::gpu_is_lost;
  if (const int code = device->driver->fault(function); code != success) return code;
  return f(*device->driver);
}

/// And one that is about none.
template <class F>
int without(const char* function, F f) {
  if (!devices().begun()) return nvml_code::uninitialised;
  if (const int code = devices().fault(function); code != success) return code;
  return f();
}

template <class F>
int find_device(const char* function, nvml::Device* to, F is_it) {
  return without(function, [&]() -> int {
    for (SimulatedDevice* device : devices().list()) {
      if (device->driver && is_it(*device->driver)) return put(to, device->handle());
    }
    return nvml_code::not_found;
  });
}

unsigned long long event_reasons(SimulatedDriver& gpu) {
  return (gpu.idle() ? nvml::reason_idle : 0ULL) | (gpu.power_capped() ? nvml::reason_power_cap : 0ULL);
}

unsigned clock_of(SimulatedDriver& gpu, int type) {
  return type == nvml::clock_memory ? memory_clock_mhz : static_cast<unsigned>(gpu.clock().value());
}

bool is_clock_type(int type) { return type >= nvml::clock_graphics && type <= nvml::clock_video; }

std::vector<nvml::ProcessInfo> processes_of(SimulatedDriver& gpu) {
  std::vector<nvml::ProcessInfo> list;
  for (const int process : gpu.processes()) {
    list.push_back({static_cast<unsigned>(process), 0, 0xffffffff, 0xffffffff});
  }
  return list;
}

constexpr unsigned least_limit_mw = 100'000;
unsigned most_limit_mw(const SimulatedDriver& gpu) {
  return std::max(least_limit_mw, milliwatts(gpu.default_power_limit()));
}

int set_limit(SimulatedDriver& gpu, unsigned limit_mw) {
  if (limit_mw < least_limit_mw || limit_mw > most_limit_mw(gpu)) return nvml_code::invalid_argument;
  return gpu.set_power_limit(Watts(limit_mw / 1000.0));
}

void put_number(nvml::FieldValue& field, unsigned number) {
  field.valueType = nvml::type_uint;
  field.value.ui = number;
}
void put_number(nvml::FieldValue& field, unsigned long long number) {
  field.valueType = nvml::type_ull;
  field.value.ull = number;
}

void fill(SimulatedDriver& gpu, nvml::FieldValue& field) {
  const unsigned scope = field.scopeId;
  field.timestamp = unix_us();
  field.latencyUsec = 0;
  field.nvmlReturn = success;
  field.value.ull = 0;
  switch (field.fieldId) {
    case nvml::field_total_energy:
    case nvml::field_energy:
      put_number(field, millijoules(gpu.counter()));
      break;
    case nvml::field_power_average:
      put_number(field, milliwatts(gpu.average_power()));
      break;
    case nvml::field_power_instant:
      put_number(field, milliwatts(gpu.power()));
      break;
    case nvml::field_power_min_limit:
      put_number(field, least_limit_mw);
      break;
    case nvml::field_power_max_limit:
      put_number(field, most_limit_mw(gpu));
      break;
    case nvml::field_power_default_limit:
      put_number(field, milliwatts(gpu.default_power_limit()));
      break;
    case nvml::field_power_current_limit:
    case nvml::field_power_requested_limit:
      put_number(field, milliwatts(gpu.power_limit()));
      break;
    case nvml::field_time_below_power_cap:
      put_number(field, static_cast<unsigned long long>(gpu.power_capped_for().value() * 1e9));
      break;
    case nvml::field_power_smoothing:
      put_number(field, gpu.power_smoothing() ? 1U : 0U);
      break;
    default:
      field.nvmlReturn = nvml_code::not_supported;
  }
  const bool has_scope = field.fieldId == nvml::field_energy || field.fieldId == nvml::field_power_average ||
                         field.fieldId == nvml::field_power_instant;
  if (has_scope && scope != nvml::scope_gpu) field.nvmlReturn = nvml_code::not_supported;
}

}  // namespace

// The library.

NVML_API int nvmlInit_v2() { return devices().begin(); }
NVML_API int nvmlInit() { return devices().begin(); }
NVML_API int nvmlInitWithFlags(unsigned) { return devices().begin(); }
NVML_API int nvmlShutdown() { return devices().end(); }
NVML_API const char* nvmlErrorString(int code) {
  // nvml_words() are string literals.
  return code == success ? "Success" : nvml_words(code).data();
}
NVML_API int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  return without(__func__, [&] { return put(driver_version, version, size); });
}
NVML_API int nvmlSystemGetNVMLVersion(char* version, unsigned size) {
  return without(__func__, [&] { return put(nvml_version, version, size); });
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

// Which GPUs there are.

NVML_API int nvmlDeviceGetCount_v2(unsigned* count) {
  return without(__func__, [&] { return put(count, devices().list().size()); });
}
NVML_API int nvmlDeviceGetCount(unsigned* count) {
  return without(__func__, [&] { return put(count, devices().list().size()); });
}
NVML_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml::Device* handle) {
  return without(__func__, [&]() -> int {
    const auto list = devices().list();
    if (index >= list.size()) return nvml_code::invalid_argument;
    if (!list[index]->driver) return nvml_code::gpu_is_lost;
    return put(handle, list[index]->handle());
  });
}
NVML_API int nvmlDeviceGetHandleByIndex(unsigned index, nvml::Device* handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}
NVML_API int nvmlDeviceGetHandleByUUID(const char* uuid, nvml::Device* handle) {
  if (uuid == nullptr) return nvml_code::invalid_argument;
  return find_device(__func__, handle, [&](const SimulatedDriver& gpu) { return gpu.uuid() == uuid; });
}
NVML_API int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvml::Device* handle) {
  const auto wanted = bus_id == nullptr ? std::nullopt : parse_pci_bus_id(bus_id);
  if (!wanted) return nvml_code::invalid_argument;
  return find_device(__func__, handle,
                     [&](const SimulatedDriver& gpu) { return parse_pci_bus_id(gpu.pci_bus_id()) == wanted; });
}
NVML_API int nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvml::Device* handle) {
  return nvmlDeviceGetHandleByPciBusId_v2(bus_id, handle);
}
NVML_API int nvmlDeviceGetIndex(nvml::Device device, unsigned* index) {
  return with(__func__, device, [&](SimulatedDriver&) {
    const auto list = devices().list();
    return put(index, std::ranges::find(list, devices().find(device)) - list.begin());
  });
}
NVML_API int nvmlDeviceGetMinorNumber(nvml::Device device, unsigned* number) {
  return nvmlDeviceGetIndex(device, number);
}
NVML_API int nvmlDeviceGetUUID(nvml::Device device, char* uuid, unsigned size) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return put(gpu.uuid(), uuid, size); });
}
NVML_API int nvmlDeviceGetName(nvml::Device device, char* name, unsigned size) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return put(gpu.name(), name, size); });
}
NVML_API int nvmlDeviceGetPciInfo_v3(nvml::Device device, nvml::PciInfo* pci) {
  return with(__func__, device, [&](SimulatedDriver& gpu) -> int {
    if (pci == nullptr) return nvml_code::invalid_argument;
    *pci = {};
    const PciBusId id = parse_pci_bus_id(gpu.pci_bus_id()).value_or(PciBusId{});
    pci->domain = id.domain;
    pci->bus = id.bus;
    pci->device = id.device;
    put(fmt::format("{:08X}:{:02X}:{:02X}.{:X}", id.domain, id.bus, id.device, id.function), pci->busId,
        sizeof pci->busId);
    return put(fmt::format("{:04X}:{:02X}:{:02X}.{:X}", id.domain & 0xffff, id.bus, id.device, id.function),
               pci->busIdLegacy, sizeof pci->busIdLegacy);
  });
}
NVML_API int nvmlDeviceGetArchitecture(nvml::Device device, unsigned* architecture) {
  return with(__func__, device, [&](SimulatedDriver& gpu) {
    constexpr std::array<std::pair<std::string_view, unsigned>, 7> numbers{
        {{"Volta", 5}, {"Turing", 6}, {"Ampere", 7}, {"Ada", 8}, {"Hopper", 9}, {"Blackwell", 10}, {"Rubin", 13}}};
    constexpr unsigned unknown = 0xffffffff;
    const std::string name = gpu.architecture();
    const auto* found = std::ranges::find_if(numbers, [&](const auto& number) { return number.first == name; });
    return put(architecture, found == numbers.end() ? unknown : found->second);
  });
}
NVML_API int nvmlDeviceGetCudaComputeCapability(nvml::Device device, int* major, int* minor) {
  return with(__func__, device, [&](SimulatedDriver&) { return std::max(put(major, 8), put(minor, 0)); });
}
NVML_API int nvmlDeviceGetMigMode(nvml::Device device, unsigned* now, unsigned* pending) {
  return with(__func__, device,
              [&](SimulatedDriver& gpu) { return std::max(put(now, gpu.mig()), put(pending, gpu.mig())); });
}
NVML_API int nvmlDeviceIsMigDeviceHandle(nvml::Device device, unsigned* is_slice) {
  return with(__func__, device, [&](SimulatedDriver&) { return put(is_slice, 0U); });
}
NVML_API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml::Device device, nvml::Device*) {
  return with(__func__, device, [&](SimulatedDriver&) { return nvml_code::invalid_argument; });
}

// Energy and power.

NVML_API int nvmlDeviceGetTotalEnergyConsumption(nvml::Device device, unsigned long long* energy_mj) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return put(energy_mj, millijoules(gpu.counter())); });
}
NVML_API int nvmlDeviceGetPowerUsage(nvml::Device device, unsigned* power_mw) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return put(power_mw, milliwatts(gpu.average_power())); });
}
NVML_API int nvmlDeviceGetFieldValues(nvml::Device device, int count, nvml::FieldValue* fields) {
  return with(__func__, device, [&](SimulatedDriver& gpu) -> int {
    if (count < 1 || fields == nullptr) return nvml_code::invalid_argument;
    for (int i = 0; i < count; ++i) fill(gpu, fields[i]);
    return success;
  });
}
NVML_API int nvmlDeviceGetSamples(nvml::Device device, int type, unsigned long long after_us, int* value_type,
                                  unsigned* count, nvml::Sample* samples) {
  return with(__func__, device, [&](SimulatedDriver& gpu) -> int {
    constexpr int total_power = 0, room = 120;
    if (type != total_power) return nvml_code::not_supported;
    if (count == nullptr || value_type == nullptr) return nvml_code::invalid_argument;
    *value_type = nvml::type_uint;
    std::vector<nvml::Sample> list;
    const double to_unix_s = static_cast<double>(unix_us()) * 1e-6 - gpu.now_s();
    for (const auto& [end_s, power] : gpu.power_samples(Seconds(0.02), room)) {
      nvml::Sample sample{static_cast<unsigned long long>((end_s + to_unix_s) * 1e6), {}};
      sample.value.ui = milliwatts(power);
      if (sample.timeStampUs > after_us) list.push_back(sample);
    }
    if (samples == nullptr) {
      *count = room;
      return success;
    }
    if (list.empty()) return nvml_code::not_found;
    return put(list, count, samples);
  });
}
NVML_API int nvmlDeviceGetPowerManagementLimit(nvml::Device device, unsigned* limit_mw) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return put(limit_mw, milliwatts(gpu.power_limit())); });
}
NVML_API int nvmlDeviceGetEnforcedPowerLimit(nvml::Device device, unsigned* limit_mw) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return put(limit_mw, milliwatts(gpu.power_limit())); });
}
NVML_API int nvmlDeviceGetPowerManagementDefaultLimit(nvml::Device device, unsigned* limit_mw) {
  return with(__func__, device,
              [&](SimulatedDriver& gpu) { return put(limit_mw, milliwatts(gpu.default_power_limit())); });
}
NVML_API int nvmlDeviceGetPowerManagementLimitConstraints(nvml::Device device, unsigned* least_mw, unsigned* most_mw) {
  return with(__func__, device, [&](SimulatedDriver& gpu) {
    return std::max(put(least_mw, least_limit_mw), put(most_mw, most_limit_mw(gpu)));
  });
}
NVML_API int nvmlDeviceGetPowerManagementMode(nvml::Device device, int* mode) {
  return with(__func__, device, [&](SimulatedDriver&) { return put(mode, 1); });
}
NVML_API int nvmlDeviceSetPowerManagementLimit(nvml::Device device, unsigned limit_mw) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return set_limit(gpu, limit_mw); });
}
NVML_API int nvmlDeviceSetPowerManagementLimit_v2(nvml::Device device, nvml::PowerValue* limit) {
  return with(__func__, device, [&](SimulatedDriver& gpu) -> int {
    constexpr unsigned version = 0x0200000C;
    constexpr int other_version = 25;
    if (limit == nullptr) return nvml_code::invalid_argument;
    if (limit->version != version) return other_version;
    if (limit->powerScope != nvml::scope_gpu) return nvml_code::not_supported;
    return set_limit(gpu, limit->powerValueMw);
  });
}

// Clocks.

NVML_API int nvmlDeviceGetSupportedMemoryClocks(nvml::Device device, unsigned* count, unsigned* clocks_mhz) {
  return with(__func__, device,
              [&](SimulatedDriver&) { return put(std::vector<unsigned>{memory_clock_mhz}, count, clocks_mhz); });
}
NVML_API int nvmlDeviceGetSupportedGraphicsClocks(nvml::Device device, unsigned memory_mhz, unsigned* count,
                                                  unsigned* clocks_mhz) {
  return with(__func__, device, [&](SimulatedDriver& gpu) -> int {
    if (memory_mhz != memory_clock_mhz) return nvml_code::not_found;
    std::vector<unsigned> list;
    for (const Megahertz clock : gpu.clocks()) list.push_back(static_cast<unsigned>(clock.value()));
    return put(list, count, clocks_mhz);
  });
}
NVML_API int nvmlDeviceGetClockInfo(nvml::Device device, int type, unsigned* clock_mhz) {
  return with(__func__, device, [&](SimulatedDriver& gpu) -> int {
    if (!is_clock_type(type)) return nvml_code::invalid_argument;
    return put(clock_mhz, clock_of(gpu, type));
  });
}
NVML_API int nvmlDeviceGetMaxClockInfo(nvml::Device device, int type, unsigned* clock_mhz) {
  return with(__func__, device, [&](SimulatedDriver& gpu) -> int {
    if (!is_clock_type(type)) return nvml_code::invalid_argument;
    return put(clock_mhz,
               type == nvml::clock_memory ? memory_clock_mhz : static_cast<unsigned>(gpu.clocks().front().value()));
  });
}
NVML_API int nvmlDeviceGetClock(nvml::Device device, int type, int which, unsigned* clock_mhz) {
  constexpr int current = 0;
  if (which != current) return nvml_code::not_supported;
  return nvmlDeviceGetClockInfo(device, type, clock_mhz);
}
NVML_API int nvmlDeviceGetCurrentClocksEventReasons(nvml::Device device, unsigned long long* reasons) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return put(reasons, event_reasons(gpu)); });
}
NVML_API int nvmlDeviceGetCurrentClocksThrottleReasons(nvml::Device device, unsigned long long* reasons) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return put(reasons, event_reasons(gpu)); });
}
NVML_API int nvmlDeviceGetSupportedClocksEventReasons(nvml::Device device, unsigned long long* reasons) {
  return with(__func__, device,
              [&](SimulatedDriver&) { return put(reasons, nvml::reason_idle | nvml::reason_power_cap); });
}
NVML_API int nvmlDeviceGetSupportedClocksThrottleReasons(nvml::Device device, unsigned long long* reasons) {
  return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}
NVML_API int nvmlDeviceSetGpuLockedClocks(nvml::Device device, unsigned least_mhz, unsigned most_mhz) {
  return with(__func__, device, [&](SimulatedDriver& gpu) -> int {
    constexpr unsigned symbolic = 0xffffff00, most_number = 100'000;
    const bool least_symbolic = least_mhz > symbolic, most_symbolic = most_mhz > symbolic;
    if (least_symbolic && most_symbolic) {  // TDP, UNLIMITED: the highest
      const Megahertz highest = gpu.clocks().front();
      return gpu.lock_clocks(highest, highest);
    }
    if (least_mhz > most_number || most_mhz > most_number) return nvml_code::invalid_argument;
    return gpu.lock_clocks(Megahertz(static_cast<int>(least_mhz)), Megahertz(static_cast<int>(most_mhz)));
  });
}
NVML_API int nvmlDeviceResetGpuLockedClocks(nvml::Device device) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return gpu.unlock_clocks(); });
}
// As on datacentre parts: the memory's clock is what it is.
NVML_API int nvmlDeviceSetMemoryLockedClocks(nvml::Device device, unsigned, unsigned) {
  return with(__func__, device, [&](SimulatedDriver&) { return nvml_code::not_supported; });
}
NVML_API int nvmlDeviceResetMemoryLockedClocks(nvml::Device device) {
  return with(__func__, device, [&](SimulatedDriver&) { return nvml_code::not_supported; });
}
NVML_API int nvmlDeviceGetApplicationsClock(nvml::Device device, int type, unsigned* clock_mhz) {
  return nvmlDeviceGetMaxClockInfo(device, type, clock_mhz);
}
NVML_API int nvmlDeviceSetApplicationsClocks(nvml::Device device, unsigned, unsigned) {
  return with(__func__, device, [&](SimulatedDriver&) { return nvml_code::not_supported; });
}
NVML_API int nvmlDeviceResetApplicationsClocks(nvml::Device device) {
  return with(__func__, device, [&](SimulatedDriver&) { return nvml_code::not_supported; });
}
NVML_API int nvmlDeviceGetAPIRestriction(nvml::Device device, int, int* restricted) {
  return with(__func__, device, [&](SimulatedDriver&) { return put(restricted, 1); });
}

// Everything else that its users ask.

NVML_API int nvmlDeviceGetPersistenceMode(nvml::Device device, int* mode) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return put(mode, gpu.persistence()); });
}
NVML_API int nvmlDeviceSetPersistenceMode(nvml::Device device, int mode) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return gpu.set_persistence(mode != 0); });
}
NVML_API int nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device device, unsigned* count, nvml::ProcessInfo* list) {
  return with(__func__, device, [&](SimulatedDriver& gpu) { return put(processes_of(gpu), count, list); });
}
NVML_API int nvmlDeviceGetComputeRunningProcesses_v2(nvml::Device device, unsigned* count, nvml::ProcessInfo* list) {
  return nvmlDeviceGetComputeRunningProcesses_v3(device, count, list);
}
NVML_API int nvmlDeviceGetGraphicsRunningProcesses_v3(nvml::Device device, unsigned* count, nvml::ProcessInfo* list) {
  return with(__func__, device, [&](SimulatedDriver&) { return put(std::vector<nvml::ProcessInfo>(), count, list); });
}
NVML_API int nvmlDeviceGetPerformanceState(nvml::Device device, int* state) {
  return with(__func__, device, [&](SimulatedDriver&) { return put(state, 0); });
}
NVML_API int nvmlDeviceGetPowerState(nvml::Device device, int* state) {
  return nvmlDeviceGetPerformanceState(device, state);
}
NVML_API int nvmlDeviceGetTemperature(nvml::Device device, int, unsigned* celsius) {
  return with(__func__, device, [&](SimulatedDriver&) { return put(celsius, 40U); });
}
NVML_API int nvmlDeviceGetUtilizationRates(nvml::Device device, unsigned* gpu_and_memory_pct) {
  return with(__func__, device, [&](SimulatedDriver& gpu) -> int {
    if (gpu_and_memory_pct == nullptr) return nvml_code::invalid_argument;
    gpu_and_memory_pct[0] = gpu.idle() ? 0 : 100;
    gpu_and_memory_pct[1] = 0;
    return success;
  });
}
NVML_API int nvmlDeviceGetMemoryInfo(nvml::Device device, unsigned long long* total_free_used) {
  return with(__func__, device, [&](SimulatedDriver&) -> int {
    if (total_free_used == nullptr) return nvml_code::invalid_argument;
    constexpr unsigned long long bytes = 80ULL << 30U;
    total_free_used[0] = total_free_used[1] = bytes;
    total_free_used[2] = 0;
    return success;
  });
}
