// One iteration of a pipeline whose plan changes while it runs.
//
// Problem: a fall of power acts at once: every rank takes its new clock at the next computation that it begins, and the
//          rest of the iteration is neither the old plan's nor the new one's.
// Input:   a valid DAG, which must outlive the object; plans that fit it, in the order in which they were sent, each
//          with the time at which every rank has it, in s since the iteration's beginning (empty: before it).
// Output:  when the last computation ends; power above waiting as changes in ascending time; when the last rank is done
//          with the last computation under an earlier plan and has the last one. With one plan, the run of
//          planning/checker/plan_run.h. Computations of no time have no power.
// Cost:    O(computations log computations).
#pragma once

#include <span>
#include <vector>

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "simulation/emulator/pipeline_iteration.h"

namespace perseus::site_emulator {

struct PlanFrom {
  const model::Plan* plan = nullptr;
  std::vector<double> from_s;  ///< per rank
};

struct SwitchedIteration {
  Seconds makespan;
  double all_follow_s = 0;
  std::vector<emulator::PowerChange> power;
};

class IterationRunner {
 public:
  explicit IterationRunner(const model::ComputationDag& dag);
  SwitchedIteration run(std::span<const PlanFrom> plans);

 private:
  struct Before {
    int computation;
    double latency_s;
  };
  struct Option {
    double time_s, power_w;
  };
  std::vector<int> first_before_, rank_, first_option_;  ///< per computation
  std::vector<double> waiting_w_;                        ///< per computation: of its rank
  std::vector<Before> before_;
  std::vector<Option> options_;
  int ranks_ = 0;
  std::vector<double> end_s_;
};

}  // namespace perseus::site_emulator
