// What computations of different ranks share: times that grow with the step (drift), and times of a microbatch that are
// long on all ranks of its pipeline (sequences).
//
// Problem: neither is the fault of a GPU, but both make its computations slower than others.
// Method:  a computation's time over the usual one of its stage and instruction; of a microbatch, the lower median over
//          all ranks of its pipeline: a slow worker is not in it. A trend over steps counts if its sign is significant
//          (Kendall, 1 %) and it grows by kLeastGrowth; its slope is that of Theil and Sen. Factors of microbatches
//          count if they vary by kLeastSpread and twice as much as the ranks' own variation explains.
// Output:  empty vectors where there is no such factor.
// Errors:  none.
// Cost:    O(computations log computations).
// Threads: pure function.
#pragma once

#include <vector>

#include "evaluation/what_if/traced_job.h"

namespace perseus::what_if {

inline constexpr double kLeastGrowth = 0.05, kLeastSpread = 0.03;

struct SharedFactors {
  std::vector<double> drift;  ///< per step; 1 in the first
  /// Per step, pipeline and microbatch; the mean is 1. Without the drift.
  std::vector<std::vector<std::vector<double>>> length;
  double longest = 1;  ///< 95 % of the microbatches are not longer

  /// Of step number `step` of the job's steps.
  [[nodiscard]] double drift_of(int step) const { return drift.empty() ? 1 : drift[step]; }
  [[nodiscard]] double length_of(int step, int pipeline, int microbatch) const {
    return length.empty() ? 1 : length[step][pipeline][microbatch];
  }
};

SharedFactors shared_factors(const TracedJob& job);

}  // namespace perseus::what_if
