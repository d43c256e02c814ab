#include "training/device/nvml_gpu.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string_view>

#include "training/device/backends.h"
#include "training/device/nvml_codes.h"
#include "training/device/pci_bus_id.h"

namespace perseus::device {
namespace {

using nvml_code::kSuccess;

// The only place that converts NVML's units to ours.
Watts watts_of(unsigned long long milliwatts) { return Watts(static_cast<double>(milliwatts) / 1000); }
Joules joules_of(unsigned long long millijoules) { return Joules(static_cast<double>(millijoules) / 1000); }

std::string architecture_of(unsigned number) {
  constexpr std::array<std::string_view, 14> names{"",       "",    "Kepler", "Maxwell",   "Pascal", "Volta", "Turing",
                                                   "Ampere", "Ada", "Hopper", "Blackwell", "",       "",      "Rubin"};
  return number < names.size() ? std::string(names[number]) : std::string();
}

std::string text_of(int (*function)(nvml::Device, char*, unsigned), nvml::Device device) {
  std::array<char, 96> text{};
  return call(function, device, text.data(), static_cast<unsigned>(text.size() - 1)) == kSuccess ? text.data() : "";
}

/// Reads an NVML list: first its length, without a buffer, then its content; a list may grow in between. `function` and
/// `of`: the call, without its last two arguments.
template <class T, class Function, class... Arguments>
int read_list(std::vector<T>& list, Function* function, Arguments... of) {
  unsigned count = 0;
  int code = call(function, of..., &count, static_cast<T*>(nullptr));
  for (int tries = 0; code == nvml_code::kInsufficientSize && tries < 3; ++tries) {
    list.resize(count);
    code = call(function, of..., &count, list.data());
  }
  if (code == kSuccess) list.resize(std::min<std::size_t>(count, list.size()));
  return code;
}

int uuid_of(const NvmlLibrary& nvml, nvml::Device device, std::string& uuid) {
  std::array<char, 96> text{};
  const int code = call(nvml.nvmlDeviceGetUUID, device, text.data(), static_cast<unsigned>(text.size() - 1));
  if (code == kSuccess) uuid = text.data();
  return code;
}

/// Nothing: of a type that NVML did not have.
std::optional<unsigned long long> number_in(const nvml::FieldValue& field) {
  switch (field.valueType) {
    case nvml::type_double:
      return static_cast<unsigned long long>(field.value.d);
    case nvml::type_uint:
      return field.value.ui;
    case nvml::type_ulong:
      return field.value.ul;
    case nvml::type_ull:
      return field.value.ull;
    case nvml::type_sll:
      return static_cast<unsigned long long>(field.value.sll);
    case nvml::type_int:
      return static_cast<unsigned long long>(field.value.si);
    case nvml::type_us:
      return field.value.us;
    default:
      return std::nullopt;
  }
}

/// As /proc has it, the first 15 characters; none: this PID namespace has no such process.
std::optional<std::string> name_of_process(unsigned pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  if (!std::getline(file, name)) return std::nullopt;
  return name;
}

bool is_index(const std::string& which) {
  return !which.empty() && which.size() < 6 &&
         std::ranges::all_of(which, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// The GPUs that NVML lists, without those that have no handle.
std::vector<nvml::Device> devices_of(const NvmlLibrary& nvml) {
  unsigned count = 0;
  std::vector<nvml::Device> devices;
  if (call(nvml.nvmlDeviceGetCount_v2, &count) != kSuccess) return devices;
  for (unsigned i = 0; i < count; ++i) {
    nvml::Device device = nullptr;
    if (call(nvml.nvmlDeviceGetHandleByIndex_v2, i, &device) == kSuccess) devices.push_back(device);
  }
  return devices;
}

/// CUDA gives the UUID of a MIG slice without its kind, so that it is taken for a GPU's; older drivers name a slice
/// after its GPU (MIG-GPU-.../1/0). Empty: there is no other spelling.
std::string other_spelling(const std::string& uuid) {
  constexpr std::size_t prefix = 4;
  if (uuid.starts_with("GPU-")) return "MIG-" + uuid.substr(prefix);
  if (uuid.starts_with("MIG-GPU-")) return uuid.substr(prefix, uuid.find('/') - prefix);
  return "";
}

DeviceResult<nvml::Device> find_device(const NvmlLibrary& nvml, const std::string& which) {
  nvml::Device device = nullptr;
  const auto found = [&](std::string_view function, int code) -> DeviceResult<nvml::Device> {
    if (code == kSuccess) return device;
    DeviceError error = nvml_error(function, "nvml:" + which, code);
    // Missing, or no GPU to NVML: in either case there is no such GPU.
    if (code == nvml_code::kInvalidArgument || code == nvml_code::kNotFound) error.fault = DeviceFault::lost;
    return error;
  };
  if (is_index(which)) {
    const auto index = static_cast<unsigned>(std::strtoul(which.c_str(), nullptr, 10));
    return found("nvmlDeviceGetHandleByIndex_v2", call(nvml.nvmlDeviceGetHandleByIndex_v2, index, &device));
  }
  if (parse_pci_bus_id(which)) {
    const int code = call(nvml.nvmlDeviceGetHandleByPciBusId_v2, which.c_str(), &device);
    return found("nvmlDeviceGetHandleByPciBusId_v2", code);
  }
  if (which.starts_with("GPU-") || which.starts_with("MIG-")) {
    const int code = call(nvml.nvmlDeviceGetHandleByUUID, which.c_str(), &device);
    if (code == kSuccess) return device;
    std::vector<nvml::Device> matches;  // as in CUDA_VISIBLE_DEVICES, the beginning is enough
    for (const nvml::Device candidate : devices_of(nvml)) {
      if (text_of(nvml.nvmlDeviceGetUUID, candidate).starts_with(which)) matches.push_back(candidate);
    }
    if (matches.size() == 1) return matches.front();
    if (matches.size() > 1) {
      return DeviceError{DeviceFault::lost, fmt::format("nvml:{}: {} GPUs begin with this", which, matches.size())};
    }
    const std::string other = other_spelling(which);
    if (!other.empty() && call(nvml.nvmlDeviceGetHandleByUUID, other.c_str(), &device) == kSuccess) return device;
    return found("nvmlDeviceGetHandleByUUID", code);
  }
  return DeviceError{
      DeviceFault::not_supported,
      fmt::format("nvml:{}: neither an index, nor a UUID (GPU-...), nor a PCI bus id (0000:01:00.0)", which)};
}

}  // namespace

NvmlGpu::NvmlGpu(std::shared_ptr<const NvmlLibrary> nvml, nvml::Device device)
    : nvml_(std::move(nvml)), device_(device) {
  identity_.name = text_of(nvml_->nvmlDeviceGetName, device_);
  identity_.uuid = text_of(nvml_->nvmlDeviceGetUUID, device_);
  nvml::PciInfo pci{};
  if (call(nvml_->nvmlDeviceGetPciInfo_v3, device_, &pci) == kSuccess) {
    identity_.pci_bus_id.assign(pci.busId, strnlen(pci.busId, sizeof pci.busId));
  }
  unsigned architecture = 0;
  if (call(nvml_->nvmlDeviceGetArchitecture, device_, &architecture) == kSuccess) {
    identity_.architecture = architecture_of(architecture);
  }
  identity_.driver = nvml_->driver;
  identity_.simulated = nvml_->simulated;
  unsigned minor = 0;
  if (!identity_.simulated && call(nvml_->nvmlDeviceGetMinorNumber, device_, &minor) == kSuccess) {
    identity_.node = fmt::format("/dev/nvidia{}", minor);
  }
}

DeviceResult<std::unique_ptr<NvmlGpu>> NvmlGpu::open(const std::string& which) {
  auto nvml = nvml_library();
  if (!nvml) return nvml.error();
  auto device = find_device(**nvml, which);
  if (!device) return device.error();
  unsigned slice = 0;
  nvml::Device whole = nullptr;
  if (call((*nvml)->nvmlDeviceIsMigDeviceHandle, *device, &slice) == kSuccess && slice != 0 &&
      call((*nvml)->nvmlDeviceGetDeviceHandleFromMigDeviceHandle, *device, &whole) == kSuccess) {
    device = whole;
  }
  std::unique_ptr<NvmlGpu> gpu(new NvmlGpu(*nvml, *device));
  if (const int code = gpu->name_by(which); code != kSuccess) {
    return nvml_error("nvmlDeviceGetUUID", "nvml:" + which, code);
  }
  return gpu;
}

/// A GPU that is lost does not tell its UUID, without which no lease can name it.
int NvmlGpu::name_by(const std::string& which) {
  if (!identity_.uuid.empty()) return kSuccess;
  nvml::Device same = nullptr;
  if (which.starts_with("GPU-") && call(nvml_->nvmlDeviceGetHandleByUUID, which.c_str(), &same) == kSuccess) {
    identity_.uuid = which;
    return kSuccess;
  }
  const int code = uuid_of(*nvml_, device_, identity_.uuid);
  return fault_of_nvml(code) == DeviceFault::not_supported ? kSuccess : code;
}

DeviceError NvmlGpu::error(const char* function, int code, bool sets_clock) const {
  return nvml_error(function, identity_.uuid.empty() ? "a GPU" : identity_.uuid, code, sets_clock);
}

int NvmlGpu::field(unsigned id, unsigned scope, unsigned long long& value) const {
  nvml::FieldValue asked{};
  asked.fieldId = id;
  asked.scopeId = scope;
  const int code = call(nvml_->nvmlDeviceGetFieldValues, device_, 1, &asked);
  if (code != kSuccess) return code;
  if (asked.nvmlReturn != kSuccess) return asked.nvmlReturn;
  const auto number = number_in(asked);
  if (!number) return nvml_code::kNotSupported;
  value = *number;
  return kSuccess;
}

DeviceResult<std::vector<Megahertz>> NvmlGpu::supported_clocks() {
  if (!clocks_.empty()) return clocks_;
  std::vector<unsigned> memory;
  const int code = read_list(memory, nvml_->nvmlDeviceGetSupportedMemoryClocks, device_);
  if (code == kSuccess) {
    auto clocks = clocks_beside(memory.empty() ? 0 : *std::ranges::max_element(memory));
    if (clocks) return clocks_ = *clocks;
    if (clocks.error().fault != DeviceFault::not_supported) return clocks;
  } else if (fault_of_nvml(code) != DeviceFault::not_supported) {
    return error("nvmlDeviceGetSupportedMemoryClocks", code);
  }
  find_clocks_without_list();
  if (!clocks_.empty()) return clocks_;
  return error("nvmlDeviceGetSupportedMemoryClocks", code == kSuccess ? nvml_code::kNotSupported : code);
}

/// The clocks that the GPU has while its memory runs at that one.
DeviceResult<std::vector<Megahertz>> NvmlGpu::clocks_beside(unsigned memory_mhz) const {
  std::vector<unsigned> graphics;
  const int code = read_list(graphics, nvml_->nvmlDeviceGetSupportedGraphicsClocks, device_, memory_mhz);
  if (code != kSuccess) return error("nvmlDeviceGetSupportedGraphicsClocks", code);
  if (graphics.empty()) return error("nvmlDeviceGetSupportedGraphicsClocks", nvml_code::kNotSupported);
  std::sort(graphics.begin(), graphics.end(), std::greater<>());
  graphics.erase(std::unique(graphics.begin(), graphics.end()), graphics.end());
  std::vector<Megahertz> clocks;
  for (const unsigned mhz : graphics) clocks.emplace_back(static_cast<int>(mhz));
  return clocks;
}

/// Another process may have locked the memory's clock. Not if no clock of the new list is as high as `clock`: an idle
/// memory clock has such a list too.
bool NvmlGpu::list_has_changed(Megahertz clock) {
  unsigned memory_mhz = 0;
  if (call(nvml_->nvmlDeviceGetClockInfo, device_, nvml::clock_memory, &memory_mhz) != kSuccess) return false;
  const auto before = supported_clocks();
  auto clocks = clocks_beside(memory_mhz);
  if (!before || !clocks || clocks->front() < clock || *clocks == *before) return false;
  clocks_ = std::move(*clocks);
  return true;
}

void NvmlGpu::find_clocks_without_list() {
  constexpr int performance_state = 0;
  constexpr unsigned step_mhz = 15, most_mhz = 10'000;
  constexpr double lowest_share = 0.3;  // of the highest clock, where the driver does not give the lowest one
  unsigned least = 0, most = 0;
  clocks_source_ = "nvmlDeviceGetMinMaxClockOfPState";
  if (call(nvml_->nvmlDeviceGetMinMaxClockOfPState, device_, nvml::clock_sm, performance_state, &least, &most) !=
          kSuccess ||
      most == 0) {
    clocks_source_ = "nvmlDeviceGetMaxClockInfo";
    least = 0;
    if (call(nvml_->nvmlDeviceGetMaxClockInfo, device_, nvml::clock_sm, &most) != kSuccess) most = 0;
  }
  if (least == 0) least = static_cast<unsigned>(lowest_share * most);
  if (most == 0 || most > most_mhz || least > most) return clocks_source_.clear();
  for (unsigned mhz = most; mhz >= std::max(least, step_mhz); mhz -= step_mhz)
    clocks_.emplace_back(static_cast<int>(mhz));
}

DeviceResult<Megahertz> NvmlGpu::clock() {
  unsigned mhz = 0;
  const int code = call(nvml_->nvmlDeviceGetClockInfo, device_, nvml::clock_sm, &mhz);
  if (code != kSuccess) return error("nvmlDeviceGetClockInfo", code);
  return Megahertz(static_cast<int>(mhz));
}

DeviceResult<Joules> NvmlGpu::energy() {
  unsigned long long millijoules = 0;
  int code = call(nvml_->nvmlDeviceGetTotalEnergyConsumption, device_, &millijoules);
  if (code == nvml_code::kFunctionNotFound) code = field(nvml::field_total_energy, nvml::scope_gpu, millijoules);
  if (code != kSuccess) return error("nvmlDeviceGetTotalEnergyConsumption", code);
  return joules_of(millijoules);
}

DeviceResult<Watts> NvmlGpu::power() {
  unsigned long long milliwatts = 0;
  if (!power_scope_ && has_power_field_) {
    // Grace-Hopper refuses the scope of the GPU alone and supports that of the module.
    for (const unsigned scope : {nvml::scope_gpu, nvml::scope_module}) {
      if (field(nvml::field_power_instant, scope, milliwatts) == kSuccess) {
        power_scope_ = scope;
        break;
      }
    }
  }
  if (power_scope_) {
    const int code = field(nvml::field_power_instant, *power_scope_, milliwatts);
    if (code != kSuccess) return error("nvmlDeviceGetFieldValues", code);
    return watts_of(milliwatts);
  }
  unsigned value = 0;
  const int code = call(nvml_->nvmlDeviceGetPowerUsage, device_, &value);
  if (code != kSuccess) return error("nvmlDeviceGetPowerUsage", code);
  has_power_field_ = false;
  return watts_of(value);
}

DeviceResult<Watts> NvmlGpu::power_limit() {
  unsigned milliwatts = 0;
  int enforced = call(nvml_->nvmlDeviceGetEnforcedPowerLimit, device_, &milliwatts);
  if (enforced == kSuccess && milliwatts > 0) return watts_of(milliwatts);
  if (enforced == kSuccess) enforced = nvml_code::kNotSupported;  // 0 W: laptops, virtual GPUs
  if (fault_of_nvml(enforced) == DeviceFault::not_supported &&
      call(nvml_->nvmlDeviceGetPowerManagementLimit, device_, &milliwatts) == kSuccess && milliwatts > 0) {
    return watts_of(milliwatts);
  }
  return error("nvmlDeviceGetEnforcedPowerLimit", enforced);
}

DeviceResult<ClockEvents> NvmlGpu::clock_events() {
  unsigned long long bits = 0;
  int code = call(nvml_->nvmlDeviceGetCurrentClocksEventReasons, device_, &bits);
  if (code == nvml_code::kFunctionNotFound) {
    code = call(nvml_->nvmlDeviceGetCurrentClocksThrottleReasons, device_, &bits);
  }
  if (code != kSuccess) return error("nvmlDeviceGetCurrentClocksEventReasons", code);
  ClockEvents events;
  events.idle = (bits & nvml::reason_idle) != 0;
  events.power_cap = (bits & nvml::reason_power_cap) != 0;
  events.thermal = (bits & (nvml::reason_sw_thermal | nvml::reason_hw_thermal)) != 0;
  events.power_brake = (bits & (nvml::reason_hw_slowdown | nvml::reason_power_brake)) != 0;
  events.sync_boost = (bits & nvml::reason_sync_boost) != 0;
  return events;
}

DeviceResult<GpuConditions> NvmlGpu::conditions() {
  GpuConditions conditions;
  // Older and smaller GPUs lack many of these; a missing one is no hindrance. A GPU that is gone is.
  const auto unknown = [&](const char* function, int code) -> std::optional<DeviceError> {
    if (code == kSuccess || fault_of_nvml(code) == DeviceFault::not_supported) return std::nullopt;
    return error(function, code);
  };
  unsigned now = 0, pending = 0;
  int code = call(nvml_->nvmlDeviceGetMigMode, device_, &now, &pending);
  if (const auto problem = unknown("nvmlDeviceGetMigMode", code)) return *problem;
  conditions.mig = code == kSuccess && now != 0;
  int persistence = 1;
  code = call(nvml_->nvmlDeviceGetPersistenceMode, device_, &persistence);
  if (const auto problem = unknown("nvmlDeviceGetPersistenceMode", code)) return *problem;
  conditions.persistence = code != kSuccess || persistence != 0;
  unsigned long long smoothing = 0;
  conditions.power_smoothing =
      field(nvml::field_power_smoothing, nvml::scope_gpu, smoothing) == kSuccess && smoothing != 0;
  unsigned milliwatts = 0;
  if (call(nvml_->nvmlDeviceGetPowerManagementDefaultLimit, device_, &milliwatts) == kSuccess) {
    conditions.default_power_limit = watts_of(milliwatts);
  }
  std::vector<nvml::ProcessInfo> processes;
  if (read_list(processes, nvml_->nvmlDeviceGetComputeRunningProcesses_v3, device_) == kSuccess) {
    const auto self = static_cast<unsigned>(getpid()), parent = static_cast<unsigned>(getppid());
    for (const nvml::ProcessInfo& process : processes) {
      const std::optional<std::string> name = name_of_process(process.pid);
      if (process.pid == self || process.pid == parent || (name && name->starts_with("nvidia-cuda-mps"))) continue;
      ++conditions.other_processes;
      if (!name) ++conditions.unknown_processes;
    }
  }
  if (!power_scope_) static_cast<void>(power());
  conditions.whole_module = power_scope_ == nvml::scope_module;
  static_cast<void>(supported_clocks());
  conditions.clocks_source = clocks_source_;
  return conditions;
}

DeviceStatus NvmlGpu::lock_clock(Megahertz clock) {
  const auto set = [&](Megahertz to) {
    const auto mhz = static_cast<unsigned>(to.value());
    return call(nvml_->nvmlDeviceSetGpuLockedClocks, device_, mhz, mhz);
  };
  int code = set(clock);
  if (code != kSuccess && fault_of_nvml(code, true) == DeviceFault::bad_clock) {
    if (list_has_changed(clock)) return error("nvmlDeviceSetGpuLockedClocks", code, true);
    // A clock that only another GPU of the job has: use the nearest of this one's, once.
    const auto clocks = supported_clocks();
    if (clocks) {
      const auto distance = [&](Megahertz other) { return std::abs(other.value() - clock.value()); };
      const Megahertz nearest = *std::ranges::min_element(*clocks, {}, distance);
      if (nearest != clock) code = set(nearest);
    }
  }
  if (code != kSuccess) return error("nvmlDeviceSetGpuLockedClocks", code, true);
  return Ok{};
}

DeviceStatus NvmlGpu::unlock_clock() {
  const int code = call(nvml_->nvmlDeviceResetGpuLockedClocks, device_);
  if (code != kSuccess) return error("nvmlDeviceResetGpuLockedClocks", code);
  return Ok{};
}

DeviceStatus NvmlGpu::limit_clock(Megahertz lowest, Megahertz highest) {
  const int code = call(nvml_->nvmlDeviceSetGpuLockedClocks, device_, static_cast<unsigned>(lowest.value()),
                        static_cast<unsigned>(highest.value()));
  if (code != kSuccess) return error("nvmlDeviceSetGpuLockedClocks", code, true);
  return Ok{};
}

int NvmlGpu::index() const {
  unsigned index = 0;
  return call(nvml_->nvmlDeviceGetIndex, device_, &index) == kSuccess ? static_cast<int>(index) : -1;
}

FoundGpus find_nvml() {
  FoundGpus found;
  const auto nvml = nvml_library();
  if (!nvml) return found;
  unsigned count = 0;
  if (const int code = call((*nvml)->nvmlDeviceGetCount_v2, &count); code != kSuccess) {
    found.failing.push_back({"nvml", nvml_error("nvmlDeviceGetCount_v2", "this machine", code)});
    return found;
  }
  for (unsigned i = 0; i < count; ++i) {
    const std::string selector = "nvml:" + std::to_string(i);
    nvml::Device device = nullptr;
    std::string uuid;
    if (const int code = call((*nvml)->nvmlDeviceGetHandleByIndex_v2, i, &device); code != kSuccess) {
      found.failing.push_back({selector, nvml_error("nvmlDeviceGetHandleByIndex_v2", selector, code)});
    } else if (const int unnamed = uuid_of(**nvml, device, uuid); unnamed == kSuccess && !uuid.empty()) {
      found.selectors.push_back("nvml:" + uuid);
    } else if (unnamed == kSuccess || fault_of_nvml(unnamed) == DeviceFault::not_supported) {
      found.selectors.push_back(selector);
    } else {
      found.failing.push_back({selector, nvml_error("nvmlDeviceGetUUID", selector, unnamed)});
    }
  }
  return found;
}

}  // namespace perseus::device
