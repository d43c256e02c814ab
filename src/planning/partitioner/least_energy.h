// The partition whose planned iteration needs the least energy.
//
// Problem: the cost of a partition is the energy of the whole iteration (1F1B, unless the goal makes another DAG) once
//          every computation has its best clock; balance only approximates it.
// Method:  it plans all partitions if there are at most `max_planned`. Otherwise it descends from the best-balanced
//          ones (by forward, and by forward + backward), and from the goal's own, in steps that move one layer between
//          two stages: first to the least iteration time, then to the least energy, planning at most `max_planned`
//          partitions. Only if `all_tried` is true is the answer proven to be the best.
// Input:   layers with clocks, backward times and energies; N stages; M microbatches; the allowed iteration time.
// Output:  of all planned partitions that are fast enough, the one with the least lower bound on energy at the deadline
//          (the exact planner's plans are within a fraction of a percent of it), earlier stages larger on ties. The
//          default deadline is the least iteration time of any planned partition: no slower, then least energy.
// Errors:  those of balance_layers() and profile_of(); a deadline that no partition meets (with the least time); where
//          no tried partition has a DAG, make_dag's reason.
// Cost:    a lower-bound curve per planned partition.
// Threads: single-threaded.
// Source:  paper section 4.1 for the energy; the problem is not in the paper.
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
  /// Makes the DAG of a partition and its profile; a partition for which it fails is left out.
  /// Empty: 1F1B with `microbatches` and `blocking_power`.
  std::function<Result<model::ComputationDag>(const Partition&, const model::Profile&)> make_dag = {};
  std::vector<Partition> starts = {};  ///< further partitions to try and to descend from
  /// Called with 0..1, once per planned partition. A descent may end long before 1.
  std::function<void(double done)> progress = {};
};

struct LeastEnergy {
  Partition partition;
  Seconds fastest;   ///< least iteration time of this partition
  Seconds deadline;  ///< the given one; default: the least iteration time of any planned partition
  Joules energy;     ///< lower bound at the deadline
  int planned = 0;
  bool all_tried = false;
  /// For comparison, the partition of least imbalance ratio: at the deadline, or at its fastest time if that is later.
  /// Both are infinite where make_dag fails for it.
  Partition balanced;
  Seconds balanced_fastest;
  Joules balanced_energy;
};

Result<LeastEnergy> least_energy(const std::vector<model::Layer>& layers, int stages, const EnergyGoal& goal);

}  // namespace perseus::partitioner
