// The two baselines made from Zeus, which plans single GPUs and knows no DAG.
//
// ZeusGlobal: one clock for all computations, scanned over every measured clock. ZeusPerStage: one clock per stage,
// such that forward takes about equally long everywhere: for every clock of the stage whose forward is the longest at
// maximum clock (the first of equals), that time is the target, and every other stage takes the clock whose forward
// comes closest to it (the higher of equals).
// A computation that was not measured at the wanted clock runs at the next lower one that it was, as under a limit, or
// else at its lowest; one without a clock is left alone.
// Input: a valid DAG. Output: plans by falling clock (of all; of the heaviest stage); they may repeat or be dominated.
// Errors: ZeusPerStage, usage: a stage without forward, or a DAG without stages. Cost: O(clocks * (computations +
// options)). Threads: pure. Source: paper section 6.4; You et al., Zeus, NSDI'23. The published ones limit power, on
// which no profile has measurements; a limit comes down to a clock.
#pragma once

#include <vector>

#include "base/result.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::baselines {

std::vector<model::Plan> zeus_global_plans(const model::ComputationDag& dag);
Result<std::vector<model::Plan>> zeus_per_stage_plans(const model::ComputationDag& dag);

}  // namespace perseus::baselines
