// From the relaxed optimum at one deadline to real clocks.
//
// Problem: the relaxation mixes two clocks for some computations; a real plan takes one each and must meet the
// deadline. Input: a Relaxation at its current deadline. Output: a plan (a Pareto choice per computation, see
// planner/choices.h) whose makespan is at most that deadline, in ticks of the relaxation. Method: three sweeps over the
// DAG.
//   1. Forward: each computation starts as soon as it can and takes the slower of its two clocks if it still ends by
//   its
//      relaxed end; what one computation leaves of its window, the next ones on its paths can use. If the slower does
//      not fit, the choice in between with the least e + price * t is taken: time left over is worth its price, so
//      clocks far above the hull are passed by.
//   2. Backward, from the deadline: slack is spent where it saves more than a discounted price of time.
//   3. Forward again: whatever slack is left is spent on any slower clock that fits.
// Errors: none. Cost: three passes over computations and dependencies, no allocation. Threads: one object, one thread.
// Source: paper section 4.3 "Converting Back to GPU Frequencies" takes the slowest clock no slower than planned, and
// stops there; what the rest wins is measured by bench/.
#pragma once

#include <vector>

#include "model/computation_dag.h"
#include "planner/choices.h"
#include "planner/relaxation.h"

namespace perseus {

class Rounding {
 public:
  /// The best alone on every measured case.
  static constexpr double best_discount = 0.7;

  Rounding(const ComputationDag& dag, const Kinds& kinds, const Relaxation& relaxation);

  /// Choices at the relaxation's current deadline; valid until the next call. `discount` (0..1): how much of the price
  /// of time counts in the backward sweep.
  const std::vector<int>& round(double discount);

  /// Makespan and effective energy of the last result.
  [[nodiscard]] graph::Integer makespan_ticks() const { return makespan_; }
  [[nodiscard]] double effective_energy_j() const { return energy_j_; }

 private:
  using Integer = graph::Integer;
  struct Edge {
    int to;
    Integer latency;
  };
  // A computation's choices, slowest first, in one array for all kinds.
  struct TimedChoice {
    Integer time;
    double energy_j;
  };

  void forward_to_relaxed_ends();
  void backward_from(Integer deadline, double discount);
  void forward_into_slack();
  [[nodiscard]] Integer earliest_start(int computation) const;
  [[nodiscard]] const TimedChoice* choices_of(int computation) const { return &choices_[first_choice_[computation]]; }
  // The cheapest of choices [first, last] at that price of a second.
  [[nodiscard]] static int cheapest(const TimedChoice* choices, int first, int last, double joules_per_tick);

  const Relaxation& relaxation_;
  std::vector<TimedChoice> choices_;
  std::vector<int> first_choice_;
  std::vector<int> before_first_, after_first_;
  std::vector<Edge> before_, after_;
  std::vector<int> choice_;
  std::vector<Integer> start_, end_, latest_start_, latest_end_;
  Integer makespan_ = 0;
  double energy_j_ = 0;
};

}  // namespace perseus
