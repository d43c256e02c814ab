// The best-balanced partition of layers into pipeline stages, exact.
//
// Problem: cut a sequence of layers into N contiguous, non-empty stages so that either the imbalance ratio
// longest/shortest stage is least (the paper's), or the longest stage is least (which is what sets the iteration time).
// Input: one latency per layer, > 0, s; 1 <= N <= layers. Output: unique. Ties are broken
//     imbalance: least ratio, then least longest stage;   longest_stage: least longest stage, then least ratio;
// and then by the boundaries, from the front: the earlier stage takes as many layers as it can.
// Ties are exact: latencies are counted in the smallest power of ten of a second for which their sum stays below 2^53
// (a pipeline of 1 s: 1e-15 s), so decimal inputs are what they say.
// Errors: an empty or too long sequence, a latency that is not a positive number, more stages than layers.
// Cost: O(K N W log sum), K the number of (shortest, longest) pairs that no other partition dominates and that could
// still win, W <= layers how many cuts one stage has to choose from; microseconds for the paper's models, see bench/.
// Threads: pure function. Source: paper appendix B.1 (where it is a brute-force search).
#pragma once

#include <span>

#include "base/result.h"
#include "base/units.h"
#include "planning/partitioner/partition.h"

namespace perseus::partitioner {

enum class Balance { imbalance, longest_stage };

inline constexpr int max_layers = 100'000;

Result<Partition> balance_layers(std::span<const Seconds> layers, int stages, Balance objective = Balance::imbalance);

}  // namespace perseus::partitioner
