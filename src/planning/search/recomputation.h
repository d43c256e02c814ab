// Profiles of stages that recompute activations in their backward, from those of stages that do not, and the reverse.
//
// A backward that recomputes runs its stage's forward again. So at each clock that both were measured at
//     backward (recomputes) = backward (keeps activations) + forward,    time and energy alike.
// That assumes that the forward costs the same both times, and that a stage recomputes as a whole.
// A split backward recomputes in its input gradient, since nobody waits for the weight gradient.
// Input:   a valid profile. Entries named recompute and pure_backward are left as they are.
// Output:  a valid profile. Spreads of derived measurements are unknown: 0.
// Errors:  invalid_input: a stage without forward or backward, no common clock, or a backward that is not longer than
//          its forward (so that it cannot have been measured with recomputation).
// Cost:    O(measurements).
// Threads: pure.
#pragma once

#include <vector>

#include "base/result.h"
#include "planning/model/profile.h"

namespace perseus::search {

/// A profile that was measured with recomputation everywhere, as if no stage recomputed. Stages that have a split
/// backward lose forward from their input gradient.
Result<model::Profile> without_recomputation(model::Profile profile);
/// A profile that was measured without, with the stages recomputing that are marked.
Result<model::Profile> with_recomputation(model::Profile profile, const std::vector<bool>& recomputes);

}  // namespace perseus::search
