// Adapts a profile to computations that have become slower or faster since, by one factor at all clocks.
//
// Problem: more work per computation (longer sequences, another kernel) changes its time at every clock by nearly the
//          same factor, and its power hardly. Two windows show whether that holds; measuring every clock again takes
//          ten times as many.
// Method:  per entry, the mean of the log ratios of time and of power over the clocks measured since, weighted by their
//          variances. An entry whose factors are not significantly other than 1 stays as it is.
// Input:   the profile; an estimate from new samples.
// Output:  the profile with the entries scaled that deviate, and which these are. Nothing: no entry deviates, an entry
//          deviates by another factor at one clock than at another, or was not measured, or the two do not match.
// Errors:  none.
// Cost:    O(entries * clocks).
// Threads: pure.
#pragma once

#include <optional>
#include <string>

#include "server/profiling/online_profiler.h"

namespace perseus::profiling {

struct ScaledProfile {
  model::Profile profile;
  std::string text;  ///< a clause for people
};
std::optional<ScaledProfile> scaled_profile(model::Profile before, const ProfileEstimate& now);

}  // namespace perseus::profiling
