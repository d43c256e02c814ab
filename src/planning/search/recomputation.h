// Converts profiles between stages that recompute activations in their backward and stages that do not.
//
// Problem: a backward that recomputes runs its stage's forward again. So at each clock at which both were measured
//              backward (recomputes) = backward (keeps activations) + forward,    time and energy alike.
//          That assumes that the forward costs the same both times, and that a stage recomputes as a whole. A split
//          backward recomputes in its input gradient, since no computation waits for the weight gradient.
// Input:   a valid profile. Entries named recompute and pure_backward stay unchanged.
// Output:  a valid profile. Spreads of derived measurements are unknown: 0.
// Errors:  invalid_input: a stage without forward or backward, no common clock, or a backward that is not longer than
//          its forward (so that it cannot have been measured with recomputation).
// Cost:    O(measurements).
// Threads: pure functions.
#pragma once

#include <vector>

#include "base/result.h"
#include "planning/model/profile.h"

namespace perseus::search {

/// Removes recomputation from a profile in which all stages recompute. In stages with a split backward it subtracts
/// forward from the input gradient.
Result<model::Profile> without_recomputation(model::Profile profile);
/// Adds recomputation to the marked stages of a profile in which no stage recomputes.
Result<model::Profile> with_recomputation(model::Profile profile, const std::vector<bool>& recomputes);

}  // namespace perseus::search
