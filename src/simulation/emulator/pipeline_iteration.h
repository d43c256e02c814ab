// Simulates one iteration of one pipeline under one plan: its time, its energy, and its power over time.
//
// Input:   a valid DAG (throttled or not, see simulation/emulator/condition.h), a plan that fits, and the switch
//          latency of its clocks.
// Output:  results for the DAG as it is, that is, one GPU of each tensor-parallel group. Power is that of the ranks
//          above blocking power, as changes in ascending time, first at 0, last at `time`; their sum is 0 and their
//          integral computing - (blocking power * busy time) = effective energy.
// Cost:    one simulation.
// Source:  planning/checker/plan_run.h.
#pragma once

#include <vector>

#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::emulator {

struct PowerChange {
  double time_s = 0;
  double by_w = 0;
};

struct PipelineIteration {
  Seconds time;
  Joules computing;  ///< sum of e
  Joules effective;  ///< sum of e - P t
  std::vector<PowerChange> power;
};

PipelineIteration iterate_pipeline(const model::ComputationDag& dag, const model::Plan& plan, Seconds switch_latency);

}  // namespace perseus::emulator
