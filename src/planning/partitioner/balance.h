// The best-balanced partition of layers into pipeline stages, exact.
//
// Problem: divide a sequence of layers into N contiguous, non-empty stages so that either the imbalance ratio
//          longest/shortest stage is least (as in the paper), or the longest stage is least (it sets the iteration
//          time).
// Input:   one latency per layer, > 0, s; 1 <= N <= layers.
// Output:  unique, with these tie breaks:
//              imbalance: least ratio, then least longest stage;   longest_stage: least longest stage, then least
//              ratio;
//          and then by the boundaries, from the front: the earlier stage takes as many layers as it can. Ties are
//          exact: the algorithm counts latencies in the smallest power of ten of a second for which their sum stays
//          below 2^53 (a pipeline of 1 s: 1e-15 s), so decimal inputs are represented exactly.
// Errors:  an empty or too long sequence, a latency that is not a positive number, more stages than layers.
// Cost:    O(K N W log sum), K the number of (shortest, longest) pairs that no other partition dominates and that could
//          still be the optimum, W <= layers the number of candidate cuts of one stage; microseconds for the paper's
//          models, see bench/.
// Threads: pure function.
// Source:  paper appendix B.1 (where it is a brute-force search).
#pragma once

#include <span>

#include "base/result.h"
#include "base/units.h"
#include "planning/partitioner/partition.h"

namespace perseus::partitioner {

enum class Balance { imbalance, longest_stage };

inline constexpr int kMaxLayers = 100'000;

Result<Partition> balance_layers(std::span<const Seconds> layers, int stages, Balance objective = Balance::imbalance);

}  // namespace perseus::partitioner
