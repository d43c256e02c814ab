// Reduces the noise of a profile by pooling its stages and clocks.
//
// Problem: a planner that trusts every measurement selects those that err in its favor (the winner's curse): with 1 %
//          noise its plans are slower and need more energy than it claims.
// Model:   server/profiling/curve_family.h, a family per instruction for log time and one for log power. The noise is
//          known from repeats (samples > 1); without them it is estimated: the distance of each clock from the line
//          between its neighbors bounds it, and the most likely one of that bound and shares of it is used. What
//          higher polynomials explain, what stages share, equal neighbors and rounding are no noise: exact profiles
//          stay as they are.
// Input:   a profile; the noise of one sample, if the caller knows it.
// Output:  the same entries and clocks, with times and energies shrunk toward the instruction's other clocks and the
//          same clock of other stages, as far as the data allow; the noise of a single sample that was assumed; draws
//          of the possible true profile, which give a plan's expected time. Nothing changes where the noise of the
//          means is less than kLeastNoise or kLeastEstimatedNoise: real steps (throttling at a power cap) stay in any
//          case, since stages share them. At the highest clock, the end of the curve, the sum of an instruction's
//          energies over stages stays as measured: savings are relative to everything at maximum clock, which is not
//          selected by measurements, and the end of a curve is biased where GPUs throttle near it. All other energies
//          get what a clock chosen for its energy and time costs more than it seems to, in the mean over noise drawn
//          anew, as if the pooled values were the true ones: one factor per instruction.
// Errors:  none; a constant-time entry, and one of fewer than three clocks, stays as it is.
// Cost:    O(clocks * stages) where nothing is to be done, else some hundred times O(stages * clocks^3).
// Threads: pure.
// Source:  beyond the paper; docs/decisions/0041.
#pragma once

#include <optional>
#include <vector>

#include "planning/model/profile.h"

namespace perseus::profiling {

/// Relative noise of a mean below which a profile stays as it is. An estimate would mistake the curvature and steps
/// of real profiles for noise of that size.
inline constexpr double kLeastNoise = 0.001, kLeastEstimatedNoise = 0.0025, kLeastEstimatedNoiseOfFewClocks = 0.0035;
inline constexpr std::size_t kManyClocks = 20;  ///< of every entry of the instruction

/// Enough to estimate an expected iteration time to a fifth of its own standard deviation.
inline constexpr int kDraws = 32;

struct PooledProfile {
  model::Profile profile;
  double time_noise = 0;   ///< of a single sample, relative; the largest of all instructions
  double power_noise = 0;  ///< likewise
  bool changed = false;
  /// Profiles that the measurements leave possible, equally likely; none where nothing changed.
  std::vector<model::Profile> draws;
};

/// Makes an even number of draws: each has its mirror image, so that their mean is the profile.
PooledProfile pool(const model::Profile& profile, std::optional<double> noise = std::nullopt, int draws = 0);

}  // namespace perseus::profiling
