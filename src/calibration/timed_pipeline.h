// The makespan of a pipeline as a function of what its DAG does not know yet: latency, loading, tail.
//
// Problem: fitting needs the makespan of every traced plan, and how it changes with each unknown, many times over.
// Input: a valid ComputationDag, built with a latency > 0 and with `load` and `optimizer_step` types where there may be
// such; durations per computation (of a load: the measured seconds that its unknown scales; of a tail: ignored).
// Output: makespan and its gradient, read off one critical path (the makespan is convex and piecewise linear in the
// unknowns). Errors: none. Cost: O(computations + dependencies). Threads: one object per thread.
// Source: ../docs/fidelity.md. The predictions that are reported come from verify/simulator.h, not from here.
#pragma once

#include <span>
#include <vector>

#include "model/computation_dag.h"

namespace perseus {

class TimedPipeline {
 public:
  /// Unknown 0 is the latency (s), then one per stage that loads (a factor), and last the tail (s).
  explicit TimedPipeline(const ComputationDag& dag);

  [[nodiscard]] int num_unknowns() const { return static_cast<int>(loading_stages_.size()) + 2; }
  [[nodiscard]] const std::vector<int>& loading_stages() const { return loading_stages_; }
  [[nodiscard]] int tail_unknown() const { return num_unknowns() - 1; }

  struct Makespan {
    double seconds = 0;
    std::vector<double> gradient;  ///< per unknown
  };
  Makespan at(std::span<const double> durations, std::span<const double> unknowns);

 private:
  struct Edge {
    int before;
    bool has_latency;
  };
  std::vector<int> first_edge_;  ///< edges into computation i are [first_edge_[i], first_edge_[i + 1])
  std::vector<Edge> edges_;
  std::vector<int> scaled_by_;  ///< per computation: the unknown that scales its duration, or -1
  std::vector<int> loading_stages_;
  std::vector<double> end_;
  std::vector<int> critical_edge_;  ///< per computation, -1 at the start
};

}  // namespace perseus
