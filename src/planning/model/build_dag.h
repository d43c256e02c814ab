// Builds the DAG of one iteration from a profile and a schedule.
//
// Input:   a valid profile and schedule with the same number of stages; what both leave open (PipelineCosts).
// Output:  a valid ComputationDag.
// Errors:  invalid_input, naming the stage, rank or instruction; see build_dag().
// Cost:    O(computations).
// Threads: pure function.
// Source:  paper section 4.1; docs/schedules.md.
#pragma once

#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/profile.h"
#include "planning/model/schedule.h"
#include "planning/model/transfer_latency.h"

namespace perseus::model {

/// Costs that neither the profile nor the schedule contains.
struct PipelineCosts {
  Watts blocking_power;              ///< >= 0
  TransferLatency transfer_latency;  ///< of dependencies between two ranks
  /// true: a sending rank waits until its transfer is done (synchronous sends, as measured frameworks do); false: it
  /// computes meanwhile.
  bool blocking_transfers = false;
  /// A link carries one transfer per direction at a time, see planning/model/queued_transfers.h. Where senders wait, it
  /// never has two.
  bool serial_transfers = false;
};

/// The DAG of `schedule` with `profile`'s options. Stage s of the profile is stage s of the schedule. Edges: F(s,m)
/// after F(s-1,m); B or I(s,m) after that of s+1 and after F(s,m); W(s,m) after I(s,m); pure_backward(s,m) after
/// recompute(s,m); each rank's own order. The DAG omits an edge that a rank's order implies, so no pair has two edges.
/// The DAG adds constant-time instructions that the profile has and the schedule lacks: `load` before each forward of
/// its stage, then at the end of each rank its stages' `all_reduce` and last their `optimizer_step`. It omits those
/// that the schedule has and the profile lacks (their time is unknown). If the schedule recomputes early and the
/// profile has only forward and backward, planning/model/derived_instructions.h derives the two missing instructions.
/// Types are ordered by stage, then instruction; computations breadth-first from those without predecessors.
/// A dependency between two ranks has the latency of their link, see planning/model/transfer_latency.h.
/// With serial transfers, further dependencies between ranks stand for the queues of the links.
/// Errors: stage counts that differ, ranks that send without a latency of their link, an instruction without
/// measurements, a schedule that deadlocks (names the cycle), stages of one rank with different numbers of
/// accelerators, those of queues. Cost: O(computations), and that of queues.
Result<ComputationDag> build_dag(const Profile& profile, const Schedule& schedule, const PipelineCosts& costs);

/// Links that a pipeline may have instead of those of its costs.
struct OtherLinks {
  TransferLatency transfer_latency;
  bool blocking_transfers = false;
  bool operator==(const OtherLinks&) const = default;
};
/// The latency that each dependency of a DAG without queues has with these links. Errors: ranks that send without a
/// latency of their link.
Result<std::vector<Seconds>> dependency_latencies(const ComputationDag& dag, const OtherLinks& links);

}  // namespace perseus::model
