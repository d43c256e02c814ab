// What a plan realises when a clock change takes time to arrive.
//
// Model: a rank asks for the clock of its next clock-controlled computation when the one before it ends; the clock
// arrives `switch_latency` later; until then the rank computes at the clock it has, at the speed and power measured
// there (the highest measured clock not above it, where that very clock was not measured). Computations without a clock
// neither ask nor care. The iteration repeats; the second of two is reported. verify/simulator.h states the same model
// and checks it with other code.
// Input: a valid DAG and a plan. Output: time and effective energy, and end() per computation. Errors: none.
// Cost: O(computations + dependencies) twice. Threads: one object, one thread.
// Source: ../shared reference on what real runs add to the DAG; gpu clock control takes milliseconds.
#pragma once

#include <deque>
#include <vector>

#include "model/computation_dag.h"
#include "model/frontier.h"
#include "planner/realise.h"

namespace perseus {

class LateClocks {
 public:
  LateClocks(const ComputationDag& dag, Seconds switch_latency);

  Realiser::Outcome realise(const Plan& plan);
  /// End of each computation in the last realised iteration.
  [[nodiscard]] const std::vector<double>& end_s() const { return end_s_; }

 private:
  struct Arrival {
    double time_s;
    Megahertz clock;
  };
  struct RankClock {
    Megahertz now, requested;
    std::deque<Arrival> under_way;
  };
  struct Edge {
    int before;
    double latency_s;
  };

  double iterate(const Plan& plan);
  void run(int computation, int option);
  [[nodiscard]] int option_at(int type, Megahertz clock, int fallback) const;

  const ComputationDag& dag_;
  double latency_s_;
  std::vector<int> first_;
  std::vector<Edge> edges_;
  std::vector<int> rank_of_, next_on_rank_;  // next_on_rank_: -1 at the end of a rank's order
  std::vector<RankClock> clocks_;
  std::vector<double> end_s_;
  double effective_j_ = 0;
};

}  // namespace perseus
