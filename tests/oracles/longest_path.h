// Computes makespan and effective energy of a plan in one pass in topological order, as a reference for the
// simulator.
//
// Input:   a valid DAG and a plan that fits.
// Cost:    O(computations + dependencies).
// Threads: any.
#pragma once

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::testing {

struct Realized {
  Seconds time;
  Joules effective_energy;
};

Realized realize(const model::ComputationDag& dag, const model::Plan& plan);

}  // namespace perseus::testing
