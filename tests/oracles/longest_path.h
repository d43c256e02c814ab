// The makespan and effective energy of a plan by one pass in topological order: what the simulator is compared with.
//
// Input: a valid DAG and a plan that fits. Cost: O(computations + dependencies). Threads: any.
#pragma once

#include "model/computation_dag.h"
#include "model/frontier.h"

namespace perseus::testing {

struct Realised {
  Seconds time;
  Joules effective_energy;
};

Realised realise(const ComputationDag& dag, const Plan& plan);

}  // namespace perseus::testing
