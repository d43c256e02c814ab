// Derives the profile of the same model with another number of stages.
//
// Problem: several chunks a rank: a measured stage divides into equal chunks, in model order. That assumes that the
//          layers of a stage are alike: each chunk takes an equal share of the stage's time and energy at every clock.
//          A stage's first chunk loads the batch, except that the last stage loads (its labels) in its last chunk.
//          Fewer stages: neighbors merge. Times and energies add up at each clock at which all of them were measured;
//          that assumes only one clock for the whole computation.
// Input:   a valid profile; a number of stages that is a multiple or a divisor of the profile's.
// Output:  a valid profile. Spreads of divided or merged measurements are unknown: 0.
// Errors:  invalid_input: neither multiple nor divisor; merged stages that share no clock for an instruction, that have
//          different instructions or different numbers of accelerators.
// Cost:    O(measurements).
// Threads: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "planning/model/profile.h"

namespace perseus::search {

Result<model::Profile> with_stages(const model::Profile& profile, int num_stages);

/// The layers of each stage after the same change; nullopt: a stage's layers do not divide equally among its chunks.
std::optional<std::vector<int>> with_stages(const std::vector<int>& layers_per_stage, int num_stages);

}  // namespace perseus::search
