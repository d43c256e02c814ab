// Selects the number of latencies of a pipeline, and whether senders wait.
//
// Method:  candidates are the link details of link_model.h, each with senders that wait, senders that compute during a
//          transfer, and where asked for, transfers that queue. Chosen is the one with the least -2 log likelihood plus
//          a penalty per unknown (Schwarz's criterion): a run that only one candidate explains counts for it, which
//          errors on plans left out do not show. Each candidate is also fitted part by part to all plans but one part;
//          its left-out errors are those of the parts.
// Input:   a TimedProblem: the DAG and the plans' durations and measured times.
// Output:  all candidates with their fits and left-out errors; the chosen one.
// Cost:    about 50 fits, see fit_timing().
// Source:  docs/decisions/0039-latency-per-link.md; Schwarz, Estimating the Dimension of a Model, 1978.
#pragma once

#include <vector>

#include "evaluation/calibration/fit_timing.h"
#include "evaluation/calibration/link_model.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"

namespace perseus::calibration {

struct TimedProblem {
  model::ComputationDag dag;     ///< without latencies
  std::vector<TimedPlan> plans;  ///< durations by the DAG's indices
};

struct TimingCandidate {
  LinkModel links;
  Sending sending = Sending::waits;
  TimingFit fit;
  std::vector<double> left_out_errors;  ///< per plan, relative, by a fit that did not see the plan

  [[nodiscard]] double left_out_mean() const;  ///< mean of absolute values
  /// Left-out errors over the errors of the fit, at least 1: factor by which the fit's standard deviations are too
  /// small.
  [[nodiscard]] double error_inflation() const;
  /// Minus twice the log of its likelihood, with a penalty for each unknown (Schwarz's criterion).
  [[nodiscard]] double penalized() const;
};

struct TimingOptions {
  /// Simplest first. The first one that the pipeline supports is always a candidate.
  std::vector<LinkDetail> details = {LinkDetail::one, LinkDetail::per_node, LinkDetail::per_boundary,
                                     LinkDetail::per_direction};
  /// One that costs a DAG more, queues, replaces the others only if it predicts clearly better.
  std::vector<Sending> sending = {Sending::waits, Sending::computes};
  ErrorModel errors = ErrorModel::student_t;
  int folds = 5;
};

struct TimingChoice {
  std::vector<TimingCandidate> candidates;  ///< simplest first
  int chosen = 0;
  [[nodiscard]] const TimingCandidate& best() const { return candidates[chosen]; }
};

TimingChoice choose_timing(const TimedProblem& problem, const TimingOptions& options);

}  // namespace perseus::calibration
