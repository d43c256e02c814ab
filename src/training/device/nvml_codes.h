// Maps NVML's return codes to device faults, in one table.
//
// Input:   a return code of an NVML function (the simulated GPU uses them too).
// Output:  the fault, by what a caller can do about it, and a message.
// Errors:  an unknown code may be transient: busy.
// Cost:    none.
// Threads: constants.
// Source:  NVML's documentation; docs/device.md.
#pragma once

#include <string>
#include <string_view>

#include "training/device/gpu.h"

namespace perseus::device {

namespace nvml_code {
inline constexpr int success = 0, uninitialized = 1, invalid_argument = 2, not_supported = 3, no_permission = 4,
                     not_found = 6, insufficient_size = 7, driver_not_loaded = 9, function_not_found = 13,
                     gpu_is_lost = 15, unknown = 999;
}

/// `sets_clock`: the call had a clock as argument, so "invalid argument" refers to the clock.
DeviceFault fault_of_nvml(int code, bool sets_clock = false);
std::string_view nvml_words(int code);

/// "nvmlDeviceGetClockInfo of GPU-1234: no permission (NVML 4)"
DeviceError nvml_error(std::string_view function, std::string_view gpu, int code, bool sets_clock = false);

}  // namespace perseus::device
