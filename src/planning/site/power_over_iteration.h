// The power of one pipeline over an iteration of a plan, from computation to computation.
//
// Input:   a valid DAG, which must outlive the object; a plan that fits it.
// Output:  power as steps in ascending time, the first at 0; after the makespan the pipeline waits. Clocks change at
//          once. Computations of no time have no power.
// Errors:  none.
// Cost:    O(dependencies + computations log computations) a plan.
// Threads: const methods are safe concurrently.
// Source:  planning/model/neighbors.h. simulation/site_emulator/switched_iteration.h also changes plans within.
#pragma once

#include <vector>

#include "planning/model/frontier.h"
#include "planning/model/neighbors.h"
#include "planning/site/window_guard.h"

namespace perseus::site {

class PowerOverIteration {
 public:
  struct Run {
    std::vector<PowerStep> steps;
    Seconds makespan;
  };

  explicit PowerOverIteration(const model::ComputationDag& dag);
  [[nodiscard]] Run of(const model::Plan& plan) const;

 private:
  const model::ComputationDag& dag_;
  model::Neighbors<double> before_;
};

}  // namespace perseus::site
