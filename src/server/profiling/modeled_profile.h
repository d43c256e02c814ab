// Completes a profile that was measured at one clock by a model of GPUs, with error bars: for advice only.
//
// Problem: a job that sets no clocks can measure time and energy only at the clock that it runs at. What would it save?
//          Model: a kernel mix of which a share is bound by compute and the rest by memory; a GPU with static power,
//          and dynamic power ~ clock * voltage^2 above a knee, below it at the floor; a power limit that may hold the
//          clock below the highest one already. None of the five numbers is known: each has a range that GPUs from A40
//          to H100 lie in. A draw takes all five from their ranges, the GPU's four for the whole profile, the share per
//          instruction, and gives a profile that goes through the measurements.
// Input:   a profile with one clock per entry (constant-time entries have clock 0); the GPU's clocks, highest first.
// Output:  the measured clock and those of the GPU below it, down to half of it: means over the draws with their
//          standard deviations; the draws, for the error bar of a saving. The same input gives the same output.
//          docs/advise.md has the coverage of the bars on published profiles.
// Errors:  invalid_input: an entry with several clocks, or no clock of the GPU below the measured one.
// Cost:    O(draws * entries * clocks).
// Threads: pure.
#pragma once

#include <vector>

#include "base/result.h"
#include "planning/model/profile.h"

namespace perseus::profiling {

struct ModeledProfile {
  model::Profile profile;
  std::vector<model::Profile> draws;  ///< equally likely; their mean is the profile
};

/// Enough for a standard deviation to within a tenth.
inline constexpr int kModelDraws = 64;
/// Share of the measured clock below which nothing is modeled: published profiles to compare with end there.
inline constexpr double kLowestModeledShare = 0.5;

Result<ModeledProfile> model_clocks(const model::Profile& measured, const std::vector<Megahertz>& clocks,
                                    int draws = kModelDraws);

}  // namespace perseus::profiling
