// What computations of different ranks share: times that grow with the step (drift), times of a pipeline that is slow
// as a whole, and times of a microbatch that are long on all ranks of its pipeline (sequences).
//
// Problem: none is the fault of one GPU, but each makes its computations slower than others.
// Method:  a computation's time over the usual one of its stage and instruction; of a microbatch, the lower median over
//          all ranks of its pipeline: a slow worker is not in it. A trend over steps counts if its sign is significant
//          (Kendall, 1 %) and it grows by kLeastGrowth and by five standard errors, of the microbatches of a step and
//          of the steps around it; its slope is that of Theil and Sen. A pipeline is slow if it is slower than the
//          usual one of the same step by kLeastGrowth, in the median of the steps, and by five standard errors of that.
//          Factors of microbatches, without both, count if they vary by kLeastSpread, and their variance is six times
//          what the ranks' own variation explains.
// Input:   a job; which of its steps to leave out.
// Output:  empty vectors where there is no such factor.
// Cost:    O(computations log computations).
#pragma once

#include <vector>

#include "evaluation/what_if/traced_job.h"

namespace perseus::what_if {

inline constexpr double kLeastGrowth = 0.05, kLeastSpread = 0.03;

struct SharedFactors {
  std::vector<double> drift;     ///< per step; 1 in the first
  std::vector<double> pipeline;  ///< per pipeline; 1: not slow as a whole
  /// Per step, pipeline and microbatch; the mean is 1. Without the other two.
  std::vector<std::vector<std::vector<double>>> length;
  double longest = 1;  ///< 95 % of the microbatches are not longer

  /// Of step number `step` of the job's steps.
  [[nodiscard]] double drift_of(int step) const { return drift.empty() ? 1 : drift[step]; }
  [[nodiscard]] double pipeline_of(int d) const { return pipeline.empty() ? 1 : pipeline[d]; }
  [[nodiscard]] double length_of(int step, int d, int microbatch) const {
    return length.empty() ? 1 : length[step][d][microbatch];
  }
  /// All of them.
  [[nodiscard]] double of(int step, int d, int microbatch) const {
    return drift_of(step) * pipeline_of(d) * length_of(step, d, microbatch);
  }
};

/// `left_out`: per step.
SharedFactors shared_factors(const TracedJob& job, const std::vector<bool>& left_out);

}  // namespace perseus::what_if
