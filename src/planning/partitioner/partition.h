// A partition of a model's layers into pipeline stages: contiguous, none empty.
//
// Shape:   N + 1 strictly increasing layer numbers, the first 0 and the last the number of layers; stage s has the
//          layers from boundaries[s] up to and without boundaries[s + 1].
// Threads: plain value.
// Source:  paper appendix B.1 and its tables, which write partitions like this.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace perseus::partitioner {

struct Partition {
  std::vector<int> boundaries;

  [[nodiscard]] int num_stages() const { return static_cast<int>(boundaries.size()) - 1; }
  [[nodiscard]] int layers_of(int stage) const { return boundaries[stage + 1] - boundaries[stage]; }
  bool operator==(const Partition&) const = default;
};

/// Latency of each stage: the sum over its layers. O(layers).
std::vector<Seconds> stage_latencies(std::span<const Seconds> layers, const Partition& partition);
/// Latency of the longest stage divided by that of the shortest, >= 1.
double imbalance_ratio(std::span<const Seconds> layers, const Partition& partition);
/// "0 6 12 19 25", as in the paper's tables.
std::string text_of(const Partition& partition);

}  // namespace perseus::partitioner
