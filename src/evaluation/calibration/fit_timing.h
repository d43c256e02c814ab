// Fits latencies, loading and tail so that a pipeline's makespan agrees with measured iteration times.
//
// Model:   relative errors of the iteration times follow Student's t with kDegreesOfFreedom, so that a few wrong runs
//          do not move the result. Priors with heavy tails let the data override them: loading takes the measured time
//          +- 10 % (normal), the tail is 0 +- 2 % of an iteration, and each latency is the median one +- 10 times it
//          (Cauchy).
// Input:   per traced plan the durations that TimedPipeline needs and the measured time; starting values, each with one
//          number per unknown.
// Output:  the unknowns, all >= 0, with their covariance; the scale of the errors.
// Cost:    O(starts * steps * plans * computations).
// Threads: as TimedPipeline.
// Source:  docs/fidelity.md, docs/decisions/0039-latency-per-link.md.
#pragma once

#include <span>
#include <vector>

#include "base/linear_algebra.h"
#include "evaluation/calibration/timed_pipeline.h"

namespace perseus::calibration {

enum class ErrorModel { student_t, normal };

struct TimingFit {
  std::vector<double> unknowns;  ///< see TimedPipeline
  Matrix covariance;             ///< n x n; 0 for unknowns at 0
  std::vector<double> errors;    ///< relative, per plan
  double scale = 0;              ///< of the relative errors
  double objective = 0;  ///< minus twice the log of the posterior; comparable between pipelines of the same plans
  std::vector<std::vector<double>> ends;  ///< of the best descents: starts for fits to similar plans
  [[nodiscard]] double stddev(int unknown) const;
  [[nodiscard]] double correlation(int a, int b) const;
  [[nodiscard]] double rms_error() const;
};

/// Starting values: equal latencies, without a tail and with the tail that makes the median iteration right; then
/// with one boundary after another slow, at the latency that makes the median iteration right.
std::vector<std::vector<double>> starts_for(TimedPipeline& pipeline, std::span<const TimedPlan> plans);

TimingFit fit_timing(TimedPipeline& pipeline, std::span<const TimedPlan> plans,
                     const std::vector<std::vector<double>>& starts, ErrorModel errors = ErrorModel::student_t);

/// Improves a fit by descents from points where one latency is another, or that of its neighbor, until none is better:
/// with several slow links there are optima that no start is near. Those that are nearly as good join the ends.
void try_other_latencies(TimedPipeline& pipeline, std::span<const TimedPlan> plans, TimingFit& fit);

/// Where the `pinned` unknowns of `start` keep their values, whatever their priors: the others that agree best with the
/// plans, at the scale of `fit`, and the objective, comparable with that of `fit`.
struct PinnedFit {
  std::vector<double> unknowns;
  double objective = 0;
};
PinnedFit fit_pinned(TimedPipeline& pipeline, std::span<const TimedPlan> plans, const TimingFit& fit,
                     std::vector<double> start, const std::vector<char>& pinned);

}  // namespace perseus::calibration
