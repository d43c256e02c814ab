// Derives profiles of the parts of a backward computation from the profile of the whole.
//
// Problem: schedules with early recomputation or a split backward need profiles of parts that were not measured.
// Output:  early recomputation: recompute repeats the forward, so it takes the forward's measurements unchanged;
//          pure_backward is backward minus forward (time and energy) at each clock at which both were measured.
//          Split backward: the profile does not contain the input gradient's share, so the caller gives it. Stages that
//          have the parts keep theirs. The spread of recompute is that of forward; the other spreads are unknown and 0.
// Errors:  they name the stage, and the clock whose difference is not positive.
// Threads: pure functions.
// Source:  paper section 4.4; Merak's early recomputation 1F1B.
#pragma once

#include "base/result.h"
#include "planning/model/profile.h"

namespace perseus::model {

/// recompute and pure_backward of one stage. An Error if forward or backward is missing, they share no clock, or
/// backward is not longer (and does not need at least as much energy) than forward at a common clock.
struct RecomputeSplit {
  ProfileEntry recompute;
  ProfileEntry pure_backward;
};
Result<RecomputeSplit> split_recompute(const Profile& profile, int stage);

/// `profile` with input_gradient := fraction * backward and weight_gradient := (1 - fraction) * backward (time and
/// energy alike) added to each stage that has neither. 0 < fraction < 1.
Result<Profile> split_backward(Profile profile, double input_gradient_fraction);

}  // namespace perseus::model
