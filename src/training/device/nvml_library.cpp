#include "training/device/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <map>
#include <mutex>

namespace perseus::device {
namespace {

/// Null for those that the library does not have.
NvmlLibrary functions_of(void* library) {
  NvmlLibrary nvml{};
#define FIND(name) nvml.name = reinterpret_cast<decltype(nvml.name)>(::dlsym(library, #name))
  FIND(nvmlInit_v2);
  FIND(nvmlShutdown);
  FIND(nvmlSystemGetDriverVersion);
  FIND(nvmlSystemGetNVMLVersion);
  FIND(nvmlDeviceGetCount_v2);
  FIND(nvmlDeviceGetHandleByIndex_v2);
  FIND(nvmlDeviceGetHandleByUUID);
  FIND(nvmlDeviceGetHandleByPciBusId_v2);
  FIND(nvmlDeviceGetIndex);
  FIND(nvmlDeviceGetMinorNumber);
  FIND(nvmlDeviceGetUUID);
  FIND(nvmlDeviceGetName);
  FIND(nvmlDeviceGetPciInfo_v3);
  FIND(nvmlDeviceGetArchitecture);
  FIND(nvmlDeviceGetTotalEnergyConsumption);
  FIND(nvmlDeviceGetPowerUsage);
  FIND(nvmlDeviceGetFieldValues);
  FIND(nvmlDeviceGetSupportedMemoryClocks);
  FIND(nvmlDeviceGetSupportedGraphicsClocks);
  FIND(nvmlDeviceGetClockInfo);
  FIND(nvmlDeviceGetMaxClockInfo);
  FIND(nvmlDeviceGetMinMaxClockOfPState);
  FIND(nvmlDeviceGetCurrentClocksEventReasons);
  FIND(nvmlDeviceGetCurrentClocksThrottleReasons);
  FIND(nvmlDeviceSetGpuLockedClocks);
  FIND(nvmlDeviceResetGpuLockedClocks);
  FIND(nvmlDeviceGetEnforcedPowerLimit);
  FIND(nvmlDeviceGetPowerManagementLimit);
  FIND(nvmlDeviceGetPowerManagementDefaultLimit);
  FIND(nvmlDeviceGetPersistenceMode);
  FIND(nvmlDeviceGetMigMode);
  FIND(nvmlDeviceIsMigDeviceHandle);
  FIND(nvmlDeviceGetDeviceHandleFromMigDeviceHandle);
  FIND(nvmlDeviceGetComputeRunningProcesses_v3);
#undef FIND
  return nvml;
}

std::string version_of(int (*function)(char*, unsigned)) {
  std::array<char, 96> text{};
  return call(function, text.data(), static_cast<unsigned>(text.size() - 1)) == nvml_code::kSuccess ? text.data() : "?";
}

}  // namespace

DeviceResult<std::shared_ptr<const NvmlLibrary>> nvml_library() {
  // Never destroyed: a thread that hangs in the driver may return here after exit() has begun.
  static auto& mutex = *new std::mutex;
  static auto& sessions = *new std::map<std::string, std::weak_ptr<const NvmlLibrary>>;
  const std::lock_guard lock(mutex);
  const char* given = std::getenv("PERSEUS_NVML");
  const std::string name = given != nullptr && *given != '\0' ? given : "libnvidia-ml.so.1";
  if (auto session = sessions[name].lock()) return session;

  // Never closed: drivers' libraries do not survive dlclose().
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return DeviceError{DeviceFault::no_driver, fmt::format("no NVML: {}", ::dlerror())};
  NvmlLibrary nvml = functions_of(library);
  if (nvml.nvmlInit_v2 == nullptr || nvml.nvmlShutdown == nullptr) {
    return DeviceError{DeviceFault::no_driver, name + " is not NVML: it has no nvmlInit_v2"};
  }
  if (const int code = nvml.nvmlInit_v2(); code != nvml_code::kSuccess) return nvml_error("nvmlInit_v2", name, code);
  const std::string driver = version_of(nvml.nvmlSystemGetDriverVersion);
  nvml.driver = fmt::format("{}, NVML {}", driver, version_of(nvml.nvmlSystemGetNVMLVersion));
  nvml.simulated = driver.starts_with("simulated");
  const std::shared_ptr<const NvmlLibrary> session(new NvmlLibrary(std::move(nvml)), [](const NvmlLibrary* ended) {
    ended->nvmlShutdown();
    delete ended;
  });
  sessions[name] = session;
  return session;
}

}  // namespace perseus::device
