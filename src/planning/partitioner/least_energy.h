// The partition whose planned iteration needs the least energy.
//
// Problem: balance is a means; what costs is the energy of the whole iteration (1F1B, unless the goal makes another
// DAG) once every computation has its best clock. Input: layers with clocks, backward times and energies; N stages; M
// microbatches; the iteration time that is allowed. Output: of all partitions that were planned and are fast enough,
// the one with the least lower bound on energy at the deadline (the exact planner's plans are within a fraction of a
// percent of it), earlier stages larger on ties. Without a deadline it is the least iteration time of any partition
// that was looked at: no slower, then least energy. Which are looked at: all partitions if there are at most
// `max_planned`; else a descent from the best-balanced ones (by forward, and by forward + backward), whose steps move
// one layer from one stage to another: first to the least iteration time, then to the least energy, planning at most
// `max_planned` of them. `all_tried` says which: only then is the answer proven to be the best. Errors: those of
// balance_layers() and profile_of(), and a deadline that no partition meets (says the least time). Cost: a lower-bound
// curve per planned partition. Threads: none inside. Source: paper section 4.1 for the energy; the question is ours.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/layer.h"
#include "planning/partitioner/partition.h"

namespace perseus::partitioner {

struct EnergyGoal {
  int microbatches = 12;
  Watts blocking_power;
  std::optional<Seconds> deadline;
  int max_planned = 300;
  /// The DAG of a partition's profile, always of the same shape; a partition for which it fails is out. Nothing: 1F1B
  /// with `microbatches` and `blocking_power`.
  std::function<Result<model::ComputationDag>(const model::Profile&)> make_dag = {};
};

struct LeastEnergy {
  Partition partition;
  Seconds fastest;   ///< least iteration time of this partition
  Seconds deadline;  ///< given or, if not, the least of any
  Joules energy;     ///< lower bound at the deadline
  int planned = 0;
  bool all_tried = false;
  /// For comparison, the partition with the least imbalance ratio: at the deadline, or at its fastest if that is later.
  Partition balanced;
  Seconds balanced_fastest;
  Joules balanced_energy;
};

Result<LeastEnergy> least_energy(const std::vector<model::Layer>& layers, int stages, const EnergyGoal& goal);

}  // namespace perseus::partitioner
