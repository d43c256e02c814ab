// The profile of a partition: each stage's forward and backward are the sums of its layers', clock by clock.
//
// Input: layers with backward times and energies (else an Error), a partition of them. Output: a valid Profile.
// Cost: O(layers * clocks). Threads: pure.
#pragma once

#include <vector>

#include "base/result.h"
#include "planning/model/layer.h"
#include "planning/model/profile.h"
#include "planning/partitioner/partition.h"

namespace perseus::partitioner {

Result<model::Profile> profile_of(const std::vector<model::Layer>& layers, const Partition& partition);

}  // namespace perseus::partitioner
