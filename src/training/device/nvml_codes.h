// Maps NVML's return codes to device faults, in one table.
//
// Input:   a return code of an NVML function (the simulated GPU uses them too).
// Output:  the fault, by what a caller can do about it, and a message.
// Errors:  an unknown code may be transient: busy.
// Source:  NVML's documentation; docs/device.md.
#pragma once

#include <string_view>

#include "training/device/gpu.h"

namespace perseus::device {

namespace nvml_code {
inline constexpr int kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3, kNoPermission = 4,
                     kNotFound = 6, kInsufficientSize = 7, kDriverNotLoaded = 9, kFunctionNotFound = 13,
                     kGpuIsLost = 15, kUnknown = 999;
}

/// `sets_clock`: the call had a clock as argument, so "invalid argument" refers to the clock.
DeviceFault fault_of_nvml(int code, bool sets_clock = false);
std::string_view nvml_words(int code);

/// "nvmlDeviceGetClockInfo of GPU-1234: no permission (NVML 4)"
DeviceError nvml_error(std::string_view function, std::string_view gpu, int code, bool sets_clock = false);

}  // namespace perseus::device
