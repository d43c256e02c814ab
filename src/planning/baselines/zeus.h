// The two baselines made from Zeus, which plans single GPUs without a DAG.
//
// Method:  ZeusGlobal: one clock for all computations, for every measured clock. ZeusPerStage: one clock per stage,
//          such that forward takes about equally long in all stages: for every clock of the stage whose forward is the
//          longest at maximum clock (the first of equals), that time is the target, and every other stage takes the
//          clock whose forward comes closest to it (the higher of equals). A computation that was not measured at the
//          wanted clock runs at the next lower measured one, as under a limit, or else at its lowest; a computation
//          without a clock stays unchanged.
// Input:   a valid DAG.
// Output:  plans by falling clock (of all; of the heaviest stage); they may repeat or be dominated.
// Errors:  ZeusPerStage, usage: a stage without forward, or a DAG without stages.
// Cost:    O(clocks * (computations + options)).
// Threads: pure functions.
// Source:  paper section 6.4; You et al., Zeus, NSDI'23. The published baselines limit power, for which profiles have
//          no measurements; a power limit acts through the clock.
#pragma once

#include <vector>

#include "base/result.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::baselines {

std::vector<model::Plan> zeus_global_plans(const model::ComputationDag& dag);
Result<std::vector<model::Plan>> zeus_per_stage_plans(const model::ComputationDag& dag);

}  // namespace perseus::baselines
