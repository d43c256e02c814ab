// Estimates the blocking power of an accelerator, for profiles without a measured one.
//
// Input:   a profile.
// Output:  a fifth of the highest average power of any of its computations, of ONE accelerator; 0 for a profile without
//          computations. GPUs that wait on a transfer spin, and draw about that.
// Cost:    O(measurements).
// Threads: pure function.
#pragma once

#include "planning/model/profile.h"

namespace perseus::model {

Watts guessed_blocking_power(const Profile& profile);

}  // namespace perseus::model
