// The same problem told in another way: metamorphic tests plan both and compare.
//
// Input: a valid DAG; output: a valid DAG. What each does to the frontier is said with it.
#pragma once

#include "model/computation_dag.h"
#include "oracles/dice.h"

namespace perseus::testing {

/// Energies and blocking power times `factor`: energies scale, times stay.
ComputationDag scale_energies(ComputationDag dag, double factor);
/// Times and latencies times `factor`, blocking power divided by it: times scale, energies stay.
ComputationDag scale_times(ComputationDag dag, double factor);
/// Every rank's accelerators times `count`, each as before: energies scale, times stay.
ComputationDag replicate_accelerators(ComputationDag dag, int count);
/// Other numbers for ranks, types, computations (another topological order) and dependencies: nothing changes.
ComputationDag renumber(Dice& dice, const ComputationDag& dag);
/// One option more at the end of every type with a clock, worse than another in time and effective energy: nothing
/// changes.
ComputationDag add_dominated_options(Dice& dice, ComputationDag dag);
/// One computation done in two parts, one after the other, each with its own choice: the relaxation stays, real plans
/// may only get better.
ComputationDag split_in_series(const ComputationDag& dag, int computation, double fraction);

}  // namespace perseus::testing
