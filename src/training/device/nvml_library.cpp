#include "training/device/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "training/device/nvml_codes.h"

namespace perseus::device {
namespace {

// A library that is loaded at run time if it is present, and its functions, each of which may be missing.
// Input:   names to try, in order.
// Output:  a handle, for as long as the process lives: drivers' libraries do not survive dlclose().
// Errors:  the loader's message about the last name.

class DynamicLibrary {
 public:
  static Result<DynamicLibrary> load(const std::vector<std::string>& names) {
    std::string why = "no name to load";
    for (const std::string& name : names) {
      if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return DynamicLibrary(handle);
      if (const char* said = dlerror()) why = said;
    }
    return Error{ErrorCode::not_found, why};
  }

  /// Null: the library has no such function.
  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

NvmlLibrary functions_of(const DynamicLibrary& library) {
  NvmlLibrary nvml{};
#define FIND(name) library.find(nvml.name, #name)
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

  const auto library = DynamicLibrary::load({name});
  if (!library) return DeviceError{DeviceFault::no_driver, "no NVML: " + library.error().message};
  NvmlLibrary nvml = functions_of(*library);
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
