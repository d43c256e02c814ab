// Latency, loading and tail that make a pipeline's makespan agree with measured iteration times.
//
// Problem: minimise sum_p ((predicted_p - measured_p) / (noise * measured_p))^2 plus what is known beforehand: loading
// takes what was measured give or take 10 %, and the tail (optimizer step, whatever is left) is small, 0 give or take
// 0.5 % of an iteration. Where the traces do not tell latency and tail apart, that decides; noise is itself what the
// fit leaves over, so exact traces override the priors. Input: per traced plan the durations that TimedPipeline wants
// and the measured time. Output: the unknowns, all >= 0, their standard deviations, and the relative error left.
// Method: Levenberg-Marquardt from several latencies (the makespan has kinks, the error several minima); deterministic.
// Errors: none. Cost: O(starts * steps * plans * computations). Threads: as TimedPipeline. Source: ../docs/fidelity.md.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "calibration/timed_pipeline.h"

namespace perseus {

struct TimedPlan {
  std::vector<double> durations;  ///< per computation, see TimedPipeline
  double measured_s = 0;
};

struct TimingFit {
  std::vector<double> unknowns;  ///< see TimedPipeline
  std::vector<double> stddev;
  double residual = 0;   ///< root mean square of relative errors
  double objective = 0;  ///< minus twice the log of the posterior: less is better, between pipelines of the same plans
};

TimingFit fit_timing(TimedPipeline& pipeline, std::span<const TimedPlan> plans);

}  // namespace perseus
