// What slows a traced job down: its step time with one cause removed after the other.
//
// Problem: one slow GPU, unequal stages, long sequences, slow links and pauses look alike in a step's time.
// Method:  what-if analysis. The ideal step has the mean time of all computations of a kind, and the median of all
//          transfers and collectives of a kind. A cause explains as much of (as run - ideal) as its removal saves; the
//          shares overlap, so they need not add up to 1, and one above 1 means that the ideal, a mean, has the cause
//          in it. Rules before a worker is named: it is slower than the same stage of other pipelines, by more than
//          its whole pipeline is (sequences), in the median of all steps. A stage is unequal if even its fastest worker
//          is. So one pipeline alone shows no slow worker. Without drift, all steps compute like the first; without
//          long sequences, all microbatches take the mean (shared_factors.h). The ideal step has no drift either.
// Input:   a job of understand().
// Output:  causes that explain at least kLeastShare, largest first.
// Errors:  none.
// Cost:    one replay of all steps per candidate.
// Threads: pure functions.
// Source:  "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025), section 3.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/what_if/replay_step.h"
#include "evaluation/what_if/traced_job.h"

namespace perseus::what_if {

enum class CauseKind { worker, stage, drift, long_sequences, variation, links, collectives, pauses, gaps };
std::string_view name_of(CauseKind kind);

struct SlowdownCause {
  CauseKind kind = CauseKind::worker;
  TracedWorker worker{-1, -1};  ///< of worker
  int stage = -1;               ///< of worker and stage
  /// worker, stage: its computing time over that of its peers; drift: the last step over the first; long_sequences:
  /// the time of long microbatches (one of 20) over the mean.
  double factor = 1;
  double without_s = 0;  ///< mean step time without it
  double share = 0;      ///< of (as run - ideal) that its removal saves
};

/// How the times of a computation, over pipelines, steps and microbatches, vary: standard deviations of the medians per
/// step, microbatch and pipeline, as shares of the median.
struct TypeTimes {
  int stage = 0;
  model::Instruction instruction = model::Instruction::forward;
  double median_s = 0;
  double usual_s = 0;  ///< lower median of the pipelines' medians: without a slow worker
  double steps = 0, microbatches = 0, workers = 0;
};

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

struct Slowdown {
  double measured_s = 0;            ///< mean step time
  std::optional<double> between_s;  ///< mean time between two steps; nothing: no two follow each other
  double as_run_s = 0;              ///< replayed
  double ideal_s = 0;
  std::vector<SlowdownCause> causes;
  std::vector<double> step_s;      ///< replayed, per step
  std::vector<double> pipeline_s;  ///< mean time from the first computation to the last, per pipeline
  std::vector<TypeTimes> types;
  std::vector<TransferTimes> links;
};

inline constexpr double kLeastShare = 0.05;
/// Shortest relative excess over its peers that names a worker or a stage.
inline constexpr double kLeastExcess = 0.05;

Slowdown explain(const TracedJob& job);

/// From the end of a step to the beginning of the one with the next number, if that is there.
std::optional<double> time_until_next(const TracedJob& job, std::size_t step);

/// Mean times of one rank per step.
struct Waiting {
  TracedWorker worker;
  double computing_s = 0, communicating_s = 0, waiting_s = 0;
};
/// Per rank, ordered by pipeline, then rank; the three parts add up to the mean step time.
std::vector<Waiting> waiting_of(const TracedJob& job);

}  // namespace perseus::what_if
