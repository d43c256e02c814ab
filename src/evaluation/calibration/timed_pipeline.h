// The makespan of a pipeline as a function of the unknowns of its DAG: latencies, loading, tail.
//
// Problem: a fit needs the makespan of every traced plan, and its derivative for each unknown, many times.
// Input:   a valid ComputationDag with one stage per rank, built with a latency > 0 and with `load` and
//          `optimizer_step` types where such time is possible; durations per computation (of a load: the measured
//          seconds that its unknown scales; of a tail: ignored).
// Output:  makespan and gradient of one critical path. The makespan is convex and piecewise linear in the unknowns.
// Errors:  none.
// Cost:    O(computations + dependencies) per call.
// Threads: one thread per object.
// Source:  docs/fidelity.md. planning/checker/plan_run.h, not this file, makes the reported predictions.
#pragma once

#include <span>
#include <vector>

#include "evaluation/calibration/link_model.h"
#include "planning/model/computation_dag.h"
#include "planning/model/neighbors.h"

namespace perseus::calibration {

class TimedPipeline {
 public:
  /// Unknowns: the latencies of `links` (s), one factor per stage that loads, and last the tail (s).
  TimedPipeline(const model::ComputationDag& dag, const LinkModel& links);

  [[nodiscard]] int num_unknowns() const { return tail_unknown() + 1; }
  [[nodiscard]] int num_latencies() const { return links_.num_latencies(); }
  [[nodiscard]] const std::vector<int>& loading_stages() const { return loading_stages_; }
  [[nodiscard]] int tail_unknown() const { return num_latencies() + static_cast<int>(loading_stages_.size()); }

  struct Makespan {
    double seconds = 0;
    std::vector<double> gradient;  ///< per unknown
  };
  Makespan at(std::span<const double> durations, std::span<const double> unknowns);

 private:
  static constexpr int kNoUnknown = -1;
  LinkModel links_;
  model::Neighbors<int> before_;  ///< latency: its unknown, or kNoUnknown
  std::vector<int> scaled_by_;    ///< per computation: the unknown that scales its duration, or kNoUnknown
  std::vector<int> loading_stages_;
  std::vector<double> end_;
};

}  // namespace perseus::calibration
