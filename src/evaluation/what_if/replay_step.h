// Replays a traced step through its DAG: with the measured times, or with others in their place.
//
// Method:  a pipeline is a longest path: a computation starts when its rank is free and its input has arrived; a rank
//          that sends waits for its transfer. Collectives before and after the pipelines start when all of their group
//          are there: data-parallel ranks of a stage, the ranks of a pipeline, or all.
// Input:   a job of understand(), one of its steps, and the time of each computation, transfer and collective.
// Output:  seconds. Gaps that no dependency explains (loading, launches) are in the measured times only.
// Cost:    O(computations + dependencies) of the step.
#pragma once

#include <functional>
#include <vector>

#include "evaluation/what_if/traced_job.h"

namespace perseus::what_if {

struct StepTimes {
  std::function<double(const TracedOp&, TracedWorker)> compute;
  std::function<double(const TracedOp&, TracedWorker)> receive, send;
  std::function<double(const TracedCollective&, TracedWorker)> collective;
};
/// As measured.
StepTimes measured_times();
/// As measured, without transfers.
StepTimes computing_alone();

/// Ends of the computations of one pipeline, from its start, in the order of its DAG.
std::vector<double> replay_pipeline(const TracedJob& job, const PipelineStep& step, int pipeline,
                                    const StepTimes& times);
/// Time of the whole step.
double replay_step(const TracedJob& job, const TracedStep& step, const StepTimes& times);

/// From the first start of a computation to the last end, as measured.
double measured_span(const PipelineStep& step);

struct ReplayErrors {
  double with_links = 0, computing_alone = 0;  ///< medians over steps and pipelines of |replayed / measured - 1|
  /// How much earlier than its input was computed some computation of `early_rank` starts, in the median of all steps
  /// over the pipeline's time and in seconds; the largest of all ranks. Ranks with one clock have none.
  double early = 0, early_s = 0;
  TracedWorker early_rank, before_early;  ///< and the rank of its input
};
ReplayErrors replay_errors(const TracedJob& job);

}  // namespace perseus::what_if
