// Profiles of the pieces of a backward computation, where only the whole was measured.
//
// Early recomputation: recompute runs the forward again, so it takes forward's measurements as they are; pure_backward
// is backward minus forward (time and energy) at each clock that both were measured at. Split backward: what share of
// backward the input gradient takes is not in the profile, so the caller must say it.
// Errors name the stage, and the clock whose difference is not positive. Stages that have the pieces already keep them.
// Spread: that of recompute is forward's; the others' are unknown and 0. Threads: pure functions.
// Source: paper section 4.4; Merak's early recomputation 1F1B.
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
