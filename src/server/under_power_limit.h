// What a pipeline takes whose power is limited so far that it is so many times slower than planned.
//
// Input:   a characterised pipeline, the point of its frontier that it runs, how many times slower that is (> 1).
// Output:  effective energy under the plan and with everything at the highest clock, and the time of the latter, all
//          under the power limit of an accelerator that makes the plan that slow: each computation runs at the highest
//          clock, not above its own, that draws no more. Between two limits that a clock distinguishes, a line. A
//          degree that no limit reaches counts as the lowest limit.
// Errors:  none.
// Cost:    the first call for a point and degree O(computations * log clocks); then a look-up.
// Threads: one at a time per pipeline.
#pragma once

#include "server/requests.h"

namespace perseus::server {

LimitedPower under_power_limit(const CharacterisedPipeline& pipeline, int point, double degree);

}  // namespace perseus::server
