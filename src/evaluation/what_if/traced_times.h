// What a traced job's times are: of its computations, transfers and waits.
//
// Input:   a job of understand().
#pragma once

#include <optional>
#include <vector>

#include "evaluation/what_if/traced_job.h"

namespace perseus::what_if {

/// How the times of a computation, over pipelines, steps and microbatches, vary: standard deviations of the medians per
/// step, microbatch and pipeline, as shares of the median.
struct TypeTimes {
  int stage = 0;
  model::Instruction instruction = model::Instruction::forward;
  double median_s = 0;
  double usual_s = 0;  ///< lower median of the pipelines' medians: without a slow worker
  double steps = 0, microbatches = 0, workers = 0;
};

std::vector<TypeTimes> type_times(const TracedJob& job);

/// Transfers over the boundary between two stages, as the receiver sees them.
struct TransferTimes {
  int boundary = 0;  ///< between stages `boundary` and `boundary` + 1
  bool forward = true;
  double median_s = 0, longest_s = 0;
  /// The median's two parts, where messages of known and unequal sizes tell them apart: a message takes latency_s plus
  /// its size over bytes_per_s. Otherwise all of it is latency.
  double latency_s = 0;
  std::optional<double> bytes_per_s = {};
};

std::vector<TransferTimes> link_times(const TracedJob& job);

/// Per step: from its end to the beginning of the one with the next number, if that is there. Nothing for all, where
/// others follow without time for the steps between: their recorder moved sampled steps together.
std::vector<std::optional<double>> times_until_next(const TracedJob& job);

/// Mean times of one rank per step.
struct Waiting {
  TracedWorker worker;
  double computing_s = 0, communicating_s = 0, waiting_s = 0;
};
/// Per rank, ordered by pipeline, then rank; the three parts add up to the mean step time.
std::vector<Waiting> waiting_of(const TracedJob& job);

}  // namespace perseus::what_if
