// Time and energy of a plan whose clock changes arrive late.
//
// Model:   a rank requests the clock of its next clock-controlled computation when the one before it ends. The clock
//          arrives `switch_latency` later. A GPU makes one change at a time: a request during a change waits until that
//          change is done, and then takes its own latency; of several waiting requests, the newest counts. Until a
//          clock arrives, the rank computes at its current clock, at the speed and power measured there (if that clock
//          was not measured: at the highest measured clock below it). Computations without a clock neither request a
//          change nor depend on one. The iteration repeats; the result is the second of two.
//          planning/checker/plan_run.h states the same model and checks it with other code.
// Input:   a valid DAG and a plan.
// Output:  time and effective energy, and the end of each computation.
// Cost:    O(computations + dependencies) twice.
// Threads: one thread per object.
// Source:  docs/decisions/0030-clocks-at-device-time.md ("One change at a time").
#pragma once

#include <limits>
#include <vector>

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/neighbors.h"
#include "planning/planner/realize.h"

namespace perseus::planner {

class LateClocks {
 public:
  LateClocks(const model::ComputationDag& dag, Seconds switch_latency);

  Realizer::Outcome realize(const model::Plan& plan);
  /// End of each computation in the last realized iteration.
  [[nodiscard]] const std::vector<double>& end_s() const { return end_s_; }

 private:
  struct RankClock {
    Megahertz now, coming, requested;
    double arrives_s = std::numeric_limits<double>::infinity();  ///< of `coming`; infinity: no change is under way
  };

  double iterate(const model::Plan& plan);
  void settle(RankClock& clock, double until_s) const;
  void run(int computation, int option);
  [[nodiscard]] int option_at(int type, Megahertz clock, int fallback) const;

  const model::ComputationDag& dag_;
  double latency_s_;
  model::Neighbors<double> before_;
  std::vector<int> rank_of_, next_on_rank_;  // next_on_rank_: -1 at the end of a rank's order
  std::vector<RankClock> clocks_;
  std::vector<double> end_s_;
  double effective_j_ = 0;
};

}  // namespace perseus::planner
