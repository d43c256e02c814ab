#include "training/device/gpu.h"

#include <fmt/format.h>

namespace perseus::device {

DeviceStatus Gpu::limit_clock(Megahertz lowest, Megahertz highest) {
  return DeviceError{DeviceFault::not_supported,
                     fmt::format("cannot limit the clock of {} to [{}, {}] MHz: not supported by its driver",
                                 stable_id(identity()), lowest.value(), highest.value())};
}

}  // namespace perseus::device
