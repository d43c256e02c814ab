// The two reference plans: all computations at maximum clock, and all at least effective energy.
//
// Input:   a valid DAG.
// Output:  one option index per computation.
// Errors:  none.
// Cost:    O(computations * options).
// Threads: pure functions.
// Source:  paper section 6.1 (all-maximum clock is the default mode of operation), 4.1 (T*).
#pragma once

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::model {

/// Every computation at its highest clock (option 0).
Plan all_maximum_clock(const ComputationDag& dag);
/// Every computation at its option of least effective energy (e - P t); the faster of equal ones.
Plan minimum_energy_plan(const ComputationDag& dag);

}  // namespace perseus::model
