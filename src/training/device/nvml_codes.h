// What NVML's return codes mean to this system: the policy, in one table.
//
// Input: a code that a function of NVML returned (the simulated GPU speaks them too). Output: what can be done about
// it, and words. Errors: a code that is not known may go away: busy. Cost: none. Threads: constants. Source: NVML's
// documentation; shared reference, gpu_control_and_metering, "Return codes".
#pragma once

#include <string>
#include <string_view>

#include "training/device/gpu.h"

namespace perseus::device {

namespace nvml_code {
inline constexpr int success = 0, uninitialised = 1, invalid_argument = 2, not_supported = 3, no_permission = 4,
                     not_found = 6, insufficient_size = 7, driver_not_loaded = 9, function_not_found = 13,
                     gpu_is_lost = 15, unknown = 999;
}

/// `sets_clock`: the call had a clock as argument, so "invalid argument" is about that.
DeviceFault fault_of_nvml(int code, bool sets_clock = false);
std::string_view nvml_words(int code);

/// "nvmlDeviceGetClockInfo of GPU-1234: no permission (NVML 4)"
DeviceError nvml_error(std::string_view function, std::string_view gpu, int code, bool sets_clock = false);

}  // namespace perseus::device
