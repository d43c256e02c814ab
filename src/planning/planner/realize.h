// Time and energy of a plan, from the measurements at the clocks that it sets.
//
// Input:   a valid DAG and a plan (option index per computation).
// Output:  makespan and effective energy, in double precision, by longest path in the DAG's own (topological) order.
// Errors:  none.
// Cost:    O(computations + dependencies).
// Threads: one thread per object.
// Source:  paper eq. (1). planning/checker computes the same by simulation, without this code.
#pragma once

#include <vector>

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/neighbors.h"

namespace perseus::planner {

class Realizer {
 public:
  explicit Realizer(const model::ComputationDag& dag);

  struct Outcome {
    Seconds time;
    Joules effective_energy;
  };
  Outcome realize(const model::Plan& plan);

  struct Option {
    double time_s, effective_j;
  };
  [[nodiscard]] const Option& option(int computation, int option) const {
    return options_[first_option_[computation] + option];
  }

  /// Makespans for `lanes` sets of durations at once: time_s[i][k] is that of computation i in set k.
  void makespans(const std::vector<const double*>& time_s, std::size_t lanes, double* makespan_s);

  /// Ends of the last makespans(): all lanes of computation 0, then those of 1, ...
  [[nodiscard]] const std::vector<double>& ends_s() const { return ends_s_; }

 private:
  model::Neighbors<double> before_;
  std::vector<Option> options_;    // of each type and blocking power, together
  std::vector<int> first_option_;  // per computation
  std::vector<double> end_s_;
  std::vector<double> ends_s_;  ///< [computation][lane]
};

/// Keeps the points that are Pareto-optimal in time and effective energy, slowest first; one of equal points.
/// O(points log points).
void keep_pareto(std::vector<model::FrontierPoint>& points);

}  // namespace perseus::planner
