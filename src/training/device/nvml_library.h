// NVML, loaded and initialized: its functions under their own names, each of which may be missing.
//
// Input:   $PERSEUS_NVML, else libnvidia-ml.so.1.
// Output:  one session a process; it ends with its last holder. NVML's header renames functions by macros, so the
//          names looked up here carry their version.
// Errors:  no_driver with the loader's or NVML's message; no_permission.
// Cost:    loads and initializes once, some 10 ms on real drivers.
// Threads: any, as NVML promises.
#pragma once

#include <memory>
#include <string>

#include "training/device/gpu.h"
#include "training/device/nvml_abi.h"
#include "training/device/nvml_codes.h"

namespace perseus::device {

struct NvmlLibrary {
  int (*nvmlInit_v2)();
  int (*nvmlShutdown)();
  int (*nvmlSystemGetDriverVersion)(char*, unsigned);
  int (*nvmlSystemGetNVMLVersion)(char*, unsigned);
  int (*nvmlDeviceGetCount_v2)(unsigned*);
  int (*nvmlDeviceGetHandleByIndex_v2)(unsigned, nvml::Device*);
  int (*nvmlDeviceGetHandleByUUID)(const char*, nvml::Device*);
  int (*nvmlDeviceGetHandleByPciBusId_v2)(const char*, nvml::Device*);
  int (*nvmlDeviceGetIndex)(nvml::Device, unsigned*);
  int (*nvmlDeviceGetMinorNumber)(nvml::Device, unsigned*);
  int (*nvmlDeviceGetUUID)(nvml::Device, char*, unsigned);
  int (*nvmlDeviceGetName)(nvml::Device, char*, unsigned);
  int (*nvmlDeviceGetPciInfo_v3)(nvml::Device, nvml::PciInfo*);
  int (*nvmlDeviceGetArchitecture)(nvml::Device, unsigned*);
  int (*nvmlDeviceGetTotalEnergyConsumption)(nvml::Device, unsigned long long*);
  int (*nvmlDeviceGetPowerUsage)(nvml::Device, unsigned*);
  int (*nvmlDeviceGetFieldValues)(nvml::Device, int, nvml::FieldValue*);
  int (*nvmlDeviceGetSupportedMemoryClocks)(nvml::Device, unsigned*, unsigned*);
  int (*nvmlDeviceGetSupportedGraphicsClocks)(nvml::Device, unsigned, unsigned*, unsigned*);
  int (*nvmlDeviceGetClockInfo)(nvml::Device, int, unsigned*);
  int (*nvmlDeviceGetMaxClockInfo)(nvml::Device, int, unsigned*);
  int (*nvmlDeviceGetMinMaxClockOfPState)(nvml::Device, int, int, unsigned*, unsigned*);
  int (*nvmlDeviceGetCurrentClocksEventReasons)(nvml::Device, unsigned long long*);
  int (*nvmlDeviceGetCurrentClocksThrottleReasons)(nvml::Device, unsigned long long*);  ///< its older name
  int (*nvmlDeviceSetGpuLockedClocks)(nvml::Device, unsigned, unsigned);
  int (*nvmlDeviceResetGpuLockedClocks)(nvml::Device);
  int (*nvmlDeviceGetEnforcedPowerLimit)(nvml::Device, unsigned*);
  int (*nvmlDeviceGetPowerManagementLimit)(nvml::Device, unsigned*);
  int (*nvmlDeviceGetPowerManagementDefaultLimit)(nvml::Device, unsigned*);
  int (*nvmlDeviceGetPersistenceMode)(nvml::Device, int*);
  int (*nvmlDeviceGetMigMode)(nvml::Device, unsigned*, unsigned*);
  int (*nvmlDeviceIsMigDeviceHandle)(nvml::Device, unsigned*);
  int (*nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(nvml::Device, nvml::Device*);
  int (*nvmlDeviceGetComputeRunningProcesses_v3)(nvml::Device, unsigned*, nvml::ProcessInfo*);

  std::string driver;      ///< "570.124.06, NVML 12.570.124.06"
  bool simulated = false;  ///< true for the simulated NVML: its driver's version says so
};

DeviceResult<std::shared_ptr<const NvmlLibrary>> nvml_library();

/// Calls that function if the library has it; else returns NVML's own code for that.
template <class... Parameters, class... Arguments>
int call(int (*function)(Parameters...), Arguments... arguments) {
  return function == nullptr ? nvml_code::kFunctionNotFound : function(arguments...);
}

}  // namespace perseus::device
