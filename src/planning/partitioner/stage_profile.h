// The profile of a partition: each stage's forward and backward are the sums of its layers', clock by clock.
//
// Input:   layers and a partition of them.
// Output:  a valid Profile.
// Errors:  layers without backward times or energies.
// Cost:    O(layers * clocks).
// Threads: pure function.
#pragma once

#include <vector>

#include "base/result.h"
#include "planning/model/layer.h"
#include "planning/model/profile.h"
#include "planning/partitioner/partition.h"

namespace perseus::partitioner {

Result<model::Profile> profile_of(const std::vector<model::Layer>& layers, const Partition& partition);

}  // namespace perseus::partitioner
