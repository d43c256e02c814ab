// Enumerates every plan of a tiny pipeline: the true optimum to compare planners with.
//
// Input:   a valid DAG with at most `max_plans` plans.
// Output:  the Pareto set of realized (time, effective energy), fastest first, strictly rising in time and falling in
//          energy.
// Cost:    plans * (computations + dependencies).
#pragma once

#include <vector>

#include "oracles/longest_path.h"
#include "planning/model/computation_dag.h"

namespace perseus::testing {

/// Number of plans of the DAG (a double, because it overflows integers).
double num_plans(const model::ComputationDag& dag);

class BruteForce {
 public:
  explicit BruteForce(const model::ComputationDag& dag, double max_plans = 200'000);
  [[nodiscard]] const std::vector<Realized>& pareto_set() const& { return pareto_set_; }
  void pareto_set() const&& = delete;
  /// Least effective energy of all plans whose time is at most `deadline`, which must not be below the fastest.
  [[nodiscard]] Joules best_at(Seconds deadline) const;

 private:
  std::vector<Realized> pareto_set_;
};

}  // namespace perseus::testing
