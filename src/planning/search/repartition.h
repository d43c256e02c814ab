// The same job cut at other layers, where only one partition was measured: the one with the least energy at a deadline.
//
// Layers: a measured stage is divided into as many equal layers as it has. A last stage that takes longer than its
// layers would, by the stage before it, ends in a head that takes the rest. Other constant-time work stays with its
// stage.
// Input:   a Job with one accelerator count everywhere; layers per stage (without the head); a schedule with one stage
//          per rank; the iteration time that is allowed.
// Output:  the Job with the profile (and memory) of the partition that planning/partitioner/least_energy.h finds.
// Errors:  invalid_input or usage: what the layers cannot be made from, no partition that is fast enough.
// Cost:    a lower-bound curve per planned partition.
// Threads: pure.
#pragma once

#include <vector>

#include "base/result.h"
#include "planning/model/layer.h"
#include "planning/partitioner/partition.h"
#include "planning/search/configuration.h"

namespace perseus::search {

Result<std::vector<model::Layer>> layers_of(const model::Profile& profile, const std::vector<int>& layers_per_stage);

/// The end of such a configuration's name.
inline constexpr const char* kPartitionVariant = "+partition-best";

struct Repartitioned {
  SearchedJob job;
  partitioner::Partition partition;
  bool all_tried = false;
};
Result<Repartitioned> with_best_partition(const SearchedJob& job, const ConfigurationChoice& choice,
                                          const std::vector<int>& layers_per_stage, Seconds deadline);

}  // namespace perseus::search
