// The simulated GPUs of a pipeline: one per rank, with time and power from a profile.
//
// One GPU stands for all accelerators of its rank: powers are those of all together.
//
// Problem: a replay needs a GPU per rank that takes the profile's time and power for each computation at each clock.
// Input:   a valid ComputationDag (its types' options are the profile), a rank, the values that a profile lacks.
// Output:  the specification; computation k of it is type types_of(dag, rank)[k]. Its clocks are all clocks at which
//          any computation of the rank was measured; a computation that lacks one gets time and power interpolated
//          between its neighboring clocks.
// Errors:  none; create() of the simulated GPU reports more clocks or computations than it supports.
// Cost:    O(types * clocks).
// Source:  switch latencies of some ms that depend on the target: see docs/demo.md.
#pragma once

#include <vector>

#include "planning/model/computation_dag.h"
#include "simulation/simulated_gpu/simulated_gpu.h"

namespace perseus::replay {

struct SimulatedRankOptions {
  Watts blocking_power;  ///< of one accelerator
  Watts idle_power;      ///< likewise
  Seconds counter_refresh = Seconds(0.1);
  Seconds least_switch_latency;  ///< to the highest clock
  Seconds most_switch_latency;   ///< to the lowest
};

/// Types of the DAG that run on that rank, ascending.
std::vector<int> types_of(const model::ComputationDag& dag, int rank);

simulated_gpu::SimulatedGpuSpec gpu_of_rank(const model::ComputationDag& dag, int rank,
                                            const SimulatedRankOptions& options);

/// The actual clock of a computation of that type when an option is requested while a power limit holds: the highest
/// measured one not above it that keeps the limit, else the lowest. An option index.
int option_under_limit(const model::ComputationType& type, int option, Watts limit);

}  // namespace perseus::replay
