// A GPU with an administrator's clock limit: never locks above that ceiling, and unlocking restores the limit instead
// of removing it.
//
// Input:   a GPU; the ceiling in MHz, given by an administrator: NVML has no getter for locked clocks.
// Output:  the same GPU with fewer supported clocks; unlock_clock() locks [lowest supported clock, ceiling].
// Errors:  bad_clock if the ceiling lies below every supported clock; then no clock is locked.
// Cost:    as the GPU; one query of the supported clocks.
// Threads: as training/device/gpu.h.
// Source:  docs/decisions/0027-node-daemon-and-leases-by-uuid.md.
#pragma once

#include <memory>

#include "training/device/gpu.h"

namespace perseus::device {

/// `ceiling` 0: returns the GPU itself. `stays` false: no clock above the ceiling is locked, but unlocking is the
/// GPU's own: for a client whose request must not limit the GPU after its end.
std::unique_ptr<Gpu> with_ceiling(std::unique_ptr<Gpu> gpu, Megahertz ceiling, bool stays = true);

/// $PERSEUS_CEILING_MHZ; 0: not set. A program with rights of its own ignores it. Any text but a clock is an error:
/// an administrator's limit must not be lost by a typo.
DeviceResult<Megahertz> ceiling_of_environment();

}  // namespace perseus::device
