#include "training/device/gpu.h"

#include <fmt/format.h>

namespace perseus::device {

DeviceStatus Gpu::limit_clock(Megahertz lowest, Megahertz highest) {
  return DeviceError{DeviceFault::not_supported,
                     fmt::format("cannot limit the clock of {} to [{}, {}] MHz: not supported by its driver",
                                 stable_id(identity()), lowest.value(), highest.value())};
}

DeviceResult<PowerLimits> Gpu::power_limits() {
  return DeviceError{DeviceFault::not_supported,
                     fmt::format("the driver of {} does not report the limits of its power", stable_id(identity()))};
}

DeviceStatus Gpu::set_power_limit(Watts limit) {
  return DeviceError{DeviceFault::not_supported,
                     fmt::format("cannot limit the power of {} to {:.0f} W: not supported by its driver",
                                 stable_id(identity()), limit.value())};
}

}  // namespace perseus::device
