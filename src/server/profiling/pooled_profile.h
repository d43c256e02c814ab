// A profile with less noise: what its stages and clocks tell of each other.
//
// Problem: a planner that believes every measurement picks those that err in its favor (the winner's curse): with 1 %
//          noise its plans are later and dearer than it claims.
// Input:   a profile; how noisy one sample is, if the caller knows.
// Output:  the same entries and clocks, with times and energies shrunk toward what the other clocks of the
//          instruction and the same clock of other stages say, by how much the data allow; and the noise of a single
//          sample that was assumed; draws of what the profile may really be, by which a plan's expected time is
//          judged. Nothing changes where the noise of the means is less than kLeastNoise or kLeastEstimatedNoise:
//          real steps (throttling at a power cap) stay in any case, since stages share them. At the highest clock,
//          the end of the curve, the sum of an instruction's energies over stages is what was measured: everything at
//          maximum clock is what savings are against, it is not selected by what was measured, and what a curve says
//          at its end is biased where GPUs throttle near it.
// Model:   server/profiling/curve_family.h, a family per instruction for log time and one for log power. The noise is
//          known from repeats (samples > 1); without them it is estimated: how far each clock lies off the line
//          between its neighbors bounds it, and of that bound and shares of it the most likely one counts.
// Errors:  none; a constant-time entry, and one of fewer than three clocks, is left as it is.
// Cost:    O(clocks * stages) where nothing is to be done, else some hundred times O(stages * clocks^3).
// Threads: pure.
// Source:  beyond the paper; docs/decisions/0041.
#pragma once

#include <optional>
#include <vector>

#include "planning/model/profile.h"

namespace perseus::profiling {

/// Of a mean, relative: below it a profile is taken as it is. Where the noise is estimated, what real profiles have of
/// curvature and steps between neighbors would be taken for it.
inline constexpr double kLeastNoise = 0.001, kLeastEstimatedNoise = 0.0025, kLeastEstimatedNoiseOfFewClocks = 0.0035;
inline constexpr std::size_t kManyClocks = 20;  ///< of every entry of the instruction

/// Enough to know an expected iteration time to a fifth of its own standard deviation.
inline constexpr int kDraws = 32;

struct PooledProfile {
  model::Profile profile;
  double time_noise = 0;   ///< of a single sample, relative; the largest of all instructions
  double power_noise = 0;  ///< likewise
  bool changed = false;
  /// Profiles that the measurements leave possible, each as likely as the others; none where nothing changed.
  std::vector<model::Profile> draws;
};

/// With that many draws, an even number: each has its mirror image, so that their mean is the profile.
PooledProfile pool(const model::Profile& profile, std::optional<double> noise = std::nullopt, int draws = 0);

}  // namespace perseus::profiling
