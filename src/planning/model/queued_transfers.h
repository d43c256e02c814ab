// Dependencies of transfers that queue: a link carries one transfer per direction at a time.
//
// Problem: where a transfer takes longer than the sender's next computation, the next transfer waits for it. Transfer k
//          of a link ends when its sender, and the transfer before it, have ended and one latency has passed.
// Method:  without transfers as nodes: the receiver of transfer k starts no earlier than end of sender j + (k - j + 1)
//          latencies, for every j <= k, in the order in which the sending rank computes. For j = k the DAG has this
//          dependency already. Others are left out where they cannot bind: from the first k on by which the sender
//          computes for as long as the transfers take, and where the receiver computes for a latency or more between
//          receivers k - 1 and k. Both count on the highest clocks, and on computations that are up to kFaster as fast.
// Input:   a valid DAG of a pipeline whose senders compute during a transfer, with its latencies.
// Output:  the DAG with these dependencies; still at most one between a pair of computations.
// Errors:  invalid_input: more than kMostQueued of them (transfers that take much longer than computations).
// Cost:    O((computations + new dependencies) log computations).
// Threads: pure function.
// Source:  docs/decisions/0039-latency-per-link.md.
#pragma once

#include "base/result.h"
#include "planning/model/computation_dag.h"

namespace perseus::model {

/// Least time of a computation, relative to that at its fastest clock, with which the dependencies are complete.
inline constexpr double kFaster = 0.9;
inline constexpr int kMostQueued = 1 << 18;

Status add_queued_transfers(ComputationDag& dag);

}  // namespace perseus::model
