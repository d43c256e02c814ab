// Repartitions a job of which one partition was measured: finds the partition of least energy at a deadline.
//
// Problem: a measured stage counts as as many equal layers as it has. If the last stage takes longer than its layers
//          would, by the stage before it, the rest of its time is a head. Other constant-time work stays with its
//          stage.
// Input:   a SearchedJob with one accelerator count everywhere; layers per stage (without the head); a schedule with
//          one stage per rank; the allowed iteration time.
// Output:  the SearchedJob with the profile, draws and memory of the partition that planning/partitioner/least_energy.h
//          finds by the profile, without its draws; it descends from the measured one too. With a memory limit, only
//          partitions that fit count.
// Errors:  invalid_input or usage: the profile cannot be divided into layers, memory is known of the measured stages
//          only, no partition fits the memory, or none is fast enough.
// Cost:    a lower-bound curve per planned partition.
// Threads: pure functions.
#pragma once

#include <vector>

#include "base/result.h"
#include "planning/model/layer.h"
#include "planning/partitioner/partition.h"
#include "planning/search/configuration.h"

namespace perseus::search {

Result<std::vector<model::Layer>> layers_of(const model::Profile& profile, const std::vector<int>& layers_per_stage);

/// Suffix of the names of repartitioned configurations.
inline constexpr const char* kPartitionVariant = "+partition-best";

struct Repartitioned {
  SearchedJob job;
  partitioner::Partition partition;
  bool all_tried = false;
};
Result<Repartitioned> with_best_partition(const SearchedJob& job, const ConfigurationChoice& choice,
                                          const std::vector<int>& layers_per_stage, Seconds deadline);

}  // namespace perseus::search
