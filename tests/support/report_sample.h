// A synthetic pipeline with a few plans, to view and test reports without a planner.
//
// 1F1B, N ranks with M microbatches, 24 clocks from 1410 MHz down, stages of slightly different length. The plans
// slow all stages down together, light stages more; the bound lies slightly below them. No planner computed these
// numbers.
#pragma once

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::report {

model::ComputationDag sample_dag(int ranks, int microbatches);
model::Frontier sample_frontier(const model::ComputationDag& dag, int points);

}  // namespace perseus::report
