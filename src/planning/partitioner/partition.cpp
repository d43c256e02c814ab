#include "planning/partitioner/partition.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::partitioner {

std::vector<Seconds> stage_latencies(std::span<const Seconds> layers, const Partition& partition) {
  std::vector<Seconds> stages(partition.num_stages());
  for (int s = 0; s < partition.num_stages(); ++s) {
    for (int i = partition.boundaries[s]; i < partition.boundaries[s + 1]; ++i) stages[s] += layers[i];
  }
  return stages;
}

double imbalance_ratio(std::span<const Seconds> layers, const Partition& partition) {
  const auto stages = stage_latencies(layers, partition);
  const auto [shortest, longest] = std::minmax_element(stages.begin(), stages.end());
  return *longest / *shortest;
}

std::string text_of(const Partition& partition) { return fmt::format("{}", fmt::join(partition.boundaries, " ")); }

}  // namespace perseus::partitioner
