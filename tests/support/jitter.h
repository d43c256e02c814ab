// Spread of computations' times from iteration to iteration, and how much later it makes an iteration.
//
// Problem: an iteration takes as long as its longest path. Where computations take a little longer or shorter in each
//          iteration, its mean is later than the longest path of the mean times, and more so where a plan has made many
//          paths equally long.
// Method:  runs of one plan several times differ by nothing but such variation. log time of a computation = its mean
//          over the runs + effect of the run + effect of the run on the stage + a rest, which is independent. A trace
//          has means over the n iterations of a run, and what varies from iteration to iteration varies sqrt(n) times
//          as much. What varies from run to run only (a warmer day) counts in full, so the results are upper bounds.
// Input:   a valid RunTrace; all runs of repeated plans average the same number of iterations.
// Output:  relative standard deviations of one iteration, nothing without a repeated plan; lateness relative to the
//          makespan of the means, >= 0.
// Cost:    O(computations); O(pairs * (computations + dependencies)).
// Source:  docs/decisions/0043-claims-are-expected-values.md.
#pragma once

#include <optional>

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/run_trace.h"

namespace perseus::calibration {

struct Jitter {
  double independent = 0;   ///< of each computation by itself
  double of_stage = 0;      ///< common to the computations of a stage in an iteration
  double of_iteration = 0;  ///< common to all computations of an iteration: this part adds no lateness
};
std::optional<Jitter> measured_jitter(const model::RunTrace& trace);

/// Draws come in mirrored pairs, so that their mean durations are the plan's.
double lateness(const model::ComputationDag& dag, const model::Plan& plan, const Jitter& jitter, int pairs = 200);

}  // namespace perseus::calibration
