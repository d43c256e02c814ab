// The profile of the same model cut into another number of stages, where only one cut was measured.
//
// Several chunks a rank: a measured stage is divided into equal chunks, in model order. That assumes that the layers of
// a stage are alike: each chunk takes an equal share of the stage's time and energy at every clock. The batch is loaded
// by a stage's first chunk, except that the last stage loads (its labels) in its last chunk.
// Fewer stages: neighbors are merged. Times and energies add up at each clock that all of them were measured at; that
// assumes nothing but one clock for the whole computation.
// Input:   a valid profile; a number of stages that is a multiple or a divisor of the profile's.
// Output:  a valid profile. Spreads of divided or merged measurements are unknown: 0.
// Errors:  invalid_input: neither multiple nor divisor; merged stages that share no clock for an instruction, that have
//          different instructions or different numbers of accelerators.
// Cost:    O(measurements).
// Threads: pure.
#pragma once

#include "base/result.h"
#include "planning/model/profile.h"

namespace perseus::search {

Result<model::Profile> with_stages(const model::Profile& profile, int num_stages);

}  // namespace perseus::search
