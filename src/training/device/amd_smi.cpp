// "amdsmi:WHICH": an AMD GPU through AMD SMI, loaded at run time.
//
// This file converts AMD SMI's units (accumulator * uJ, W or uW, MHz). Its structures differ between ABI 24 and later
// ones; the number in the library's name identifies the ABI. Before 26.2 it is not thread-safe, so calls are
// serialized. Clocks: AMD accepts any within [min, max]; this lists every 25 MHz of them.
//
// Source:  headers of amdsmi (ROCm 6.3 and later); docs/device.md.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "training/device/backends.h"
#include "training/device/dynamic_library.h"
#include "training/device/pci_bus_id.h"

namespace perseus::device {
namespace {

using Handle = void*;
constexpr int kSuccess = 0;
constexpr std::uint32_t kGraphicsClock = 0, kLimitMin = 0, kLimitMax = 1, kLevelAuto = 0;

struct ClockInfo {
  std::uint32_t clk, min_clk, max_clk;
  std::uint8_t clk_locked, clk_deep_sleep;
  std::uint32_t reserved[4];
};
static_assert(sizeof(ClockInfo) == 32);

struct PowerCapInfo {
  std::uint64_t power_cap, default_power_cap, dpm_cap, min_power_cap, max_power_cap, reserved[3];
};

struct AmdLibrary {
  int (*amdsmi_init)(std::uint64_t);
  int (*amdsmi_get_socket_handles)(std::uint32_t*, Handle*);
  int (*amdsmi_get_processor_handles)(Handle, std::uint32_t*, Handle*);
  int (*amdsmi_get_gpu_device_bdf)(Handle, std::uint64_t*);
  int (*amdsmi_get_gpu_device_uuid)(Handle, unsigned*, char*);
  int (*amdsmi_get_gpu_asic_info)(Handle, void*);
  int (*amdsmi_get_gpu_driver_info)(Handle, void*);
  int (*amdsmi_get_energy_count)(Handle, std::uint64_t*, float*, std::uint64_t*);
  int (*amdsmi_get_clock_info)(Handle, std::uint32_t, ClockInfo*);
  int (*amdsmi_get_power_info)(Handle, void*);
  int (*amdsmi_get_power_cap_info)(Handle, std::uint32_t, PowerCapInfo*);
  int (*amdsmi_set_power_cap)(Handle, std::uint32_t, std::uint64_t);
  int (*amdsmi_set_gpu_clk_limit)(Handle, std::uint32_t, std::uint32_t, std::uint64_t);
  int (*amdsmi_set_gpu_perf_level)(Handle, std::uint32_t);
  int abi;  ///< 24, 25, ...
  std::vector<Handle> gpus;
};

/// Serializes the calls into the library in this process.
std::mutex& library_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

DeviceFault fault_of(int status, bool sets_clock) {
  switch (status) {
    case 1:
    case 17:
      return sets_clock ? DeviceFault::bad_clock : DeviceFault::not_supported;  // invalid, out of bounds
    case 2:                                                                     // not supported
    case 3:                                                                     // not yet implemented
    case 5:                                                                     // no such symbol
    case 43:
      return DeviceFault::not_supported;  // unexpected data: the library is older than the GPU
    case 4:                               // cannot load
    case 6:                               // DRM
    case 18:
    case 32:
      return DeviceFault::no_driver;  // not initialized
    case 10:
      return DeviceFault::no_permission;
    case 31:
      return DeviceFault::lost;  // not found
    default:
      return DeviceFault::busy;
  }
}

DeviceError amd_error(const char* function, const std::string& gpu, int status, bool sets_clock = false) {
  const DeviceFault fault = fault_of(status, sets_clock);
  const char* words = "failed, possibly only for now";
  switch (fault) {
    case DeviceFault::not_supported:
      words = "not supported";
      break;
    case DeviceFault::no_permission:
      words = "no permission";
      break;
    case DeviceFault::bad_clock:
      words = "invalid argument";
      break;
    case DeviceFault::lost:
      words = "the GPU is not found";
      break;
    case DeviceFault::no_driver:
      words = "no library or driver";
      break;
    case DeviceFault::busy:
      break;
  }
  return {fault, fmt::format("{} of {}: {} (AMD SMI {})", function, gpu, words, status)};
}

template <class... Parameters, class... Arguments>
int call(int (*function)(Parameters...), Arguments... arguments) {
  constexpr int no_symbol = 5;
  const std::lock_guard lock(library_mutex());
  return function == nullptr ? no_symbol : function(arguments...);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

/// Folders in search order; "" is the loader's own path.
std::vector<std::string> library_folders() {
  std::vector<std::string> folders;
  if (const std::string given = variable("AMDSMI_LIB_DIR"); !given.empty()) folders.push_back(given + "/");
  if (const std::string rocm = variable("ROCM_PATH"); !rocm.empty()) folders.push_back(rocm + "/lib/");
  folders.emplace_back("/opt/rocm/lib/");
  std::vector<std::string> versions;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/opt", ignored)) {
    if (entry.path().filename().string().starts_with("rocm-")) versions.push_back(entry.path().string() + "/lib/");
  }
  std::sort(versions.rbegin(), versions.rend());
  folders.insert(folders.end(), versions.begin(), versions.end());
  folders.emplace_back("");
  return folders;
}

std::vector<Handle> handles_of(const AmdLibrary& amd) {
  std::vector<Handle> gpus;
  std::uint32_t sockets = 0;
  if (call(amd.amdsmi_get_socket_handles, &sockets, static_cast<Handle*>(nullptr)) != kSuccess) return gpus;
  std::vector<Handle> socket(sockets);
  if (call(amd.amdsmi_get_socket_handles, &sockets, socket.data()) != kSuccess) return gpus;
  for (const Handle one : socket) {
    std::uint32_t count = 0;
    if (call(amd.amdsmi_get_processor_handles, one, &count, static_cast<Handle*>(nullptr)) != kSuccess) continue;
    std::vector<Handle> processors(count);
    if (call(amd.amdsmi_get_processor_handles, one, &count, processors.data()) != kSuccess) continue;
    gpus.insert(gpus.end(), processors.begin(), processors.end());
  }
  return gpus;
}

DeviceResult<AmdLibrary> load_library() {
  std::string why;
  for (const std::string& folder : library_folders()) {
    for (const int abi : {26, 25, 24}) {
      const auto library = DynamicLibrary::load({fmt::format("{}libamd_smi.so.{}", folder, abi)});
      if (!library) {
        why = library.error().message;
        continue;
      }
      AmdLibrary amd{};
      amd.abi = abi;
#define FIND(name) library->find(amd.name, #name)
      FIND(amdsmi_init);
      FIND(amdsmi_get_socket_handles);
      FIND(amdsmi_get_processor_handles);
      FIND(amdsmi_get_gpu_device_bdf);
      FIND(amdsmi_get_gpu_device_uuid);
      FIND(amdsmi_get_gpu_asic_info);
      FIND(amdsmi_get_gpu_driver_info);
      FIND(amdsmi_get_energy_count);
      FIND(amdsmi_get_clock_info);
      FIND(amdsmi_get_power_info);
      FIND(amdsmi_get_power_cap_info);
      FIND(amdsmi_set_power_cap);
      FIND(amdsmi_set_gpu_clk_limit);
      FIND(amdsmi_set_gpu_perf_level);
#undef FIND
      constexpr std::uint64_t amd_gpus = 2;
      const int status = call(amd.amdsmi_init, amd_gpus);
      if (status != kSuccess) return amd_error("amdsmi_init", "this machine", status);
      amd.gpus = handles_of(amd);
      return amd;
    }
  }
  return DeviceError{DeviceFault::no_driver, "no AMD SMI: " + why};
}

/// Loaded once (for each requested folder); a failure is tried again.
DeviceResult<const AmdLibrary*> amd_library() {
  static auto* const mutex = new std::mutex;
  static auto* const libraries = new std::map<std::string, const AmdLibrary*>;
  const std::lock_guard lock(*mutex);
  const AmdLibrary*& loaded = (*libraries)[variable("AMDSMI_LIB_DIR")];
  if (loaded == nullptr) {
    auto library = load_library();
    if (!library) return library.error();
    loaded = new AmdLibrary(std::move(*library));
  }
  return loaded;
}

PciBusId bus_id_of(std::uint64_t bdf) {
  return {static_cast<std::uint32_t>(bdf >> 16U), static_cast<std::uint32_t>((bdf >> 8U) & 0xffU),
          static_cast<std::uint32_t>((bdf >> 3U) & 0x1fU), static_cast<std::uint32_t>(bdf & 0x7U)};
}

/// Reads a structure that begins with a text, and whose length differs between versions.
std::string first_text_of(int (*function)(Handle, void*), Handle gpu) {
  alignas(16) std::array<char, 8192> structure{};
  if (call(function, gpu, static_cast<void*>(structure.data())) != kSuccess) return {};
  constexpr std::size_t shortest_field = 64;
  return {structure.data(), strnlen(structure.data(), shortest_field)};
}

class AmdGpu final : public Gpu {
 public:
  AmdGpu(const AmdLibrary& amd, Handle gpu, std::string what) : amd_(amd), gpu_(gpu), what_(std::move(what)) {
    identity_.name = first_text_of(amd_.amdsmi_get_gpu_asic_info, gpu_);
    std::array<char, 64> uuid{};
    auto size = static_cast<unsigned>(uuid.size());
    if (call(amd_.amdsmi_get_gpu_device_uuid, gpu_, &size, uuid.data()) == kSuccess) identity_.uuid = uuid.data();
    std::uint64_t bdf = 0;
    if (call(amd_.amdsmi_get_gpu_device_bdf, gpu_, &bdf) == kSuccess) {
      const PciBusId id = bus_id_of(bdf);
      identity_.pci_bus_id = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", id.domain, id.bus, id.device, id.function);
    }
    const std::string driver = first_text_of(amd_.amdsmi_get_gpu_driver_info, gpu_);
    identity_.driver = fmt::format("{}AMD SMI {}", driver.empty() ? "" : driver + ", ", amd_.abi);
    identity_.simulated = identity_.driver.starts_with("simulated");
  }

  [[nodiscard]] const GpuIdentity& identity() const override { return identity_; }

  DeviceResult<std::vector<Megahertz>> supported_clocks() override {
    const auto info = clock_info();
    if (!info) return info.error();
    const auto least = static_cast<int>(info->min_clk), most = static_cast<int>(info->max_clk);
    if (least <= 0 || most < least) return amd_error("amdsmi_get_clock_info", what_, 43);
    constexpr int step = 25;
    std::vector<Megahertz> clocks{Megahertz(most)};
    for (int mhz = (most - 1) / step * step; mhz > least; mhz -= step) clocks.emplace_back(mhz);
    if (least < most) clocks.emplace_back(least);
    return clocks;
  }

  DeviceResult<Megahertz> clock() override {
    const auto info = clock_info();
    if (!info) return info.error();
    return Megahertz(static_cast<int>(info->clk));
  }

  DeviceResult<Joules> energy() override {
    std::uint64_t accumulator = 0, timestamp_ns = 0;
    float resolution_uj = 0;
    const int status = call(amd_.amdsmi_get_energy_count, gpu_, &accumulator, &resolution_uj, &timestamp_ns);
    if (status != kSuccess) return amd_error("amdsmi_get_energy_count", what_, status);
    return Joules(static_cast<double>(accumulator) * static_cast<double>(resolution_uj) * 1e-6);
  }

  DeviceResult<Watts> power() override {
    alignas(16) std::array<unsigned char, 1024> info{};
    const int status = call(amd_.amdsmi_get_power_info, gpu_, static_cast<void*>(info.data()));
    if (status != kSuccess) return amd_error("amdsmi_get_power_info", what_, status);
    // 24: current, average; later: socket (64 bits), current, average.
    constexpr int first_with_socket = 25;
    const std::size_t at = amd_.abi >= first_with_socket ? 8 : 0;
    for (const std::size_t field : {at, at + 4}) {
      std::uint32_t watts = 0;
      std::memcpy(&watts, info.data() + field, sizeof watts);
      if (watts != 0 && watts != 0xffff && watts != 0xffffffff) return Watts(watts);
    }
    return amd_error("amdsmi_get_power_info", what_, 2);
  }

  DeviceResult<Watts> power_limit() override {
    const auto cap = power_cap();
    if (!cap) return cap.error();
    return watts_of(cap->power_cap);
  }

  /// AMD SMI has no such bits that all versions share; a clock below the requested one shows in clock().
  DeviceResult<ClockEvents> clock_events() override { return ClockEvents{}; }

  DeviceResult<GpuConditions> conditions() override {
    GpuConditions conditions;
    if (const auto cap = power_cap()) conditions.default_power_limit = watts_of(cap->default_power_cap);
    return conditions;
  }

  DeviceStatus lock_clock(Megahertz clock) override {
    if (clock <= Megahertz(0)) return amd_error("amdsmi_set_gpu_clk_limit", what_, 1, true);
    // AMD SMI refuses a minimum above the current maximum, and a maximum below the minimum: when the clock rises, the
    // maximum goes first. The limits before the first lock are not known: if one order is refused, try the other.
    const bool rises = clock > last_;
    int status = set_limits(clock, rises ? kLimitMax : kLimitMin, rises ? kLimitMin : kLimitMax);
    if (status != kSuccess && fault_of(status, true) == DeviceFault::bad_clock) {
      status = set_limits(clock, rises ? kLimitMin : kLimitMax, rises ? kLimitMax : kLimitMin);
    }
    if (status != kSuccess) return amd_error("amdsmi_set_gpu_clk_limit", what_, status, true);
    last_ = clock;
    return Ok{};
  }

  DeviceStatus unlock_clock() override {
    const int status = call(amd_.amdsmi_set_gpu_perf_level, gpu_, kLevelAuto);
    if (status != kSuccess) return amd_error("amdsmi_set_gpu_perf_level", what_, status);
    last_ = Megahertz(0);
    return Ok{};
  }

  DeviceStatus limit_clock(Megahertz lowest, Megahertz highest) override {
    // Downwards first, so that no minimum is above a maximum.
    for (const auto& [which, clock] : {std::pair{kLimitMin, lowest}, {kLimitMax, highest}}) {
      const int status =
          call(amd_.amdsmi_set_gpu_clk_limit, gpu_, kGraphicsClock, which, static_cast<std::uint64_t>(clock.value()));
      if (status != kSuccess) return amd_error("amdsmi_set_gpu_clk_limit", what_, status, true);
    }
    last_ = highest;
    return Ok{};
  }

  DeviceResult<PowerLimits> power_limits() override {
    const auto cap = power_cap();
    if (!cap) return cap.error();
    return PowerLimits{watts_of(cap->power_cap), watts_of(cap->min_power_cap), watts_of(cap->max_power_cap)};
  }

  DeviceStatus set_power_limit(Watts limit) override {
    const auto microwatts = static_cast<std::uint64_t>(std::llround(limit.value() * 1e6));
    const int status = call(amd_.amdsmi_set_power_cap, gpu_, std::uint32_t{0}, microwatts);
    if (status != kSuccess) return amd_error("amdsmi_set_power_cap", what_, status);
    return Ok{};
  }

 private:
  [[nodiscard]] int set_limits(Megahertz clock, std::uint32_t first, std::uint32_t second) const {
    const auto mhz = static_cast<std::uint64_t>(clock.value());
    const int status = call(amd_.amdsmi_set_gpu_clk_limit, gpu_, kGraphicsClock, first, mhz);
    return status != kSuccess ? status : call(amd_.amdsmi_set_gpu_clk_limit, gpu_, kGraphicsClock, second, mhz);
  }
  [[nodiscard]] DeviceResult<ClockInfo> clock_info() const {
    ClockInfo info{};
    const int status = call(amd_.amdsmi_get_clock_info, gpu_, kGraphicsClock, &info);
    if (status != kSuccess) return amd_error("amdsmi_get_clock_info", what_, status);
    return info;
  }
  [[nodiscard]] DeviceResult<PowerCapInfo> power_cap() const {
    PowerCapInfo info{};
    const int status = call(amd_.amdsmi_get_power_cap_info, gpu_, std::uint32_t{0}, &info);
    if (status != kSuccess) return amd_error("amdsmi_get_power_cap_info", what_, status);
    return info;
  }
  static Watts watts_of(std::uint64_t microwatts) { return Watts(static_cast<double>(microwatts) * 1e-6); }

  const AmdLibrary& amd_;
  Handle gpu_;
  std::string what_;
  GpuIdentity identity_;
  Megahertz last_;
};

}  // namespace

DeviceResult<std::unique_ptr<Gpu>> open_amd(const std::string& which) {
  const auto library = amd_library();
  if (!library) return library.error();
  const AmdLibrary& amd = **library;
  const std::string what = "amdsmi:" + which;
  const auto wanted = parse_pci_bus_id(which);
  const bool is_index =
      !which.empty() && which.size() < 6 && std::ranges::all_of(which, [](unsigned char c) { return std::isdigit(c); });
  if (!wanted && !is_index) {
    return DeviceError{DeviceFault::not_supported, what + ": neither an index nor a PCI bus id (0000:01:00.0)"};
  }
  for (std::size_t i = 0; i < amd.gpus.size(); ++i) {
    std::uint64_t bdf = 0;
    const bool found =
        wanted ? call(amd.amdsmi_get_gpu_device_bdf, amd.gpus[i], &bdf) == kSuccess && bus_id_of(bdf) == *wanted
               : i == static_cast<std::size_t>(std::strtoul(which.c_str(), nullptr, 10));
    if (found) return std::unique_ptr<Gpu>(std::make_unique<AmdGpu>(amd, amd.gpus[i], what));
  }
  return DeviceError{DeviceFault::lost, fmt::format("{}: there is no such GPU among {}", what, amd.gpus.size())};
}

std::pair<bool, std::string> amd_presence() {
  const auto library = amd_library();
  if (!library) return {false, library.error().message};
  return {true, fmt::format("AMD SMI {}", (*library)->abi)};
}

std::vector<std::string> find_amd() {
  std::vector<std::string> selectors;
  const auto library = amd_library();
  if (!library) return selectors;
  for (std::size_t i = 0; i < (*library)->gpus.size(); ++i) selectors.push_back(fmt::format("amdsmi:{}", i));
  return selectors;
}

}  // namespace perseus::device
