// Transformations of a planning problem with a known effect on its frontier: metamorphic tests plan both and compare.
//
// Input:   a valid DAG.
// Output:  a valid DAG; each function's comment states the effect on the frontier.
#pragma once

#include "oracles/dice.h"
#include "planning/model/computation_dag.h"

namespace perseus::testing {

/// Energies and blocking power times `factor`: energies scale, times stay.
model::ComputationDag scale_energies(model::ComputationDag dag, double factor);
/// Times and latencies times `factor`, blocking power divided by it: times scale, energies stay.
model::ComputationDag scale_times(model::ComputationDag dag, double factor);
/// Every rank's accelerators times `count`, each as before: energies scale, times stay.
model::ComputationDag replicate_accelerators(model::ComputationDag dag, int count);
/// Other numbers for ranks, types, computations (another topological order) and dependencies: nothing changes.
model::ComputationDag renumber(Dice& dice, const model::ComputationDag& dag);
/// One option more at the end of every type with a clock, worse than another in time and effective energy: nothing
/// changes.
model::ComputationDag add_dominated_options(Dice& dice, model::ComputationDag dag);
/// One computation done in two parts, one after the other, each with its own choice: the relaxation stays, real plans
/// may only get better.
model::ComputationDag split_in_series(const model::ComputationDag& dag, int computation, double fraction);

}  // namespace perseus::testing
