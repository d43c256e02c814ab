// Energy and time of a pipeline whose GPUs run under a power limit that slows it by a given factor.
//
// The device enforces the limit itself: each computation runs at the highest clock, not above the requested one, that
// draws no more. Requested clocks arrive one switch latency late, as planned.
//
// Input:   a characterized pipeline, the point of its frontier that it runs, the slowdown factor (> 1), the switch
//          latency that the frontier was made with.
// Output:  effective energy under the plan and with everything at the highest clock, and the time of the latter,
//          under that limit; linear between two limits that a clock distinguishes. A degree that no limit reaches
//          counts as the lowest limit.
// Errors:  none.
// Cost:    the first call for a point and degree O(computations * log clocks); then a lookup.
// Threads: one at a time per pipeline.
#pragma once

#include "server/jobs/requests.h"

namespace perseus::savings {

jobs::LimitedPower under_power_limit(const jobs::CharacterizedPipeline& pipeline, int point, double degree,
                                     Seconds switch_latency);

}  // namespace perseus::savings
