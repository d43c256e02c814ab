// How the device's clock differs from the one that the helper has set, as the training process reads it.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace perseus::clock_control {

/// Why the device runs below its clock; several may hold.
enum ClockLimitedBy : std::uint32_t {
  kLimitedByPowerCap = 1,
  kLimitedByHeat = 2,
  kLimitedByPowerBrake = 4,
  kLimitedUnexplained = 8  ///< setting the clock again did not help, and the device gives no reason
};

struct DeviceClock {
  Megahertz set;                 ///< that the device does not run at
  Megahertz other;               ///< at which it runs instead; 0: it follows
  std::uint32_t limited_by = 0;  ///< ClockLimitedBy; 0: it follows, or another process has set the clock
  std::int64_t foreign = 0;      ///< number of changes by other processes that were undone
  Megahertz foreign_clock;       ///< the last of these
  std::int64_t given_up = 0;     ///< number of helpers that gave the clock up, since the device does not follow
};

}  // namespace perseus::clock_control
