// What slows a traced job down: its step time with one cause removed after the other.
//
// Problem: one slow GPU, unequal stages, long sequences, slow links and pauses look alike in a step's time.
// Method:  what-if analysis. The ideal step has the mean time of all computations of a kind, and the median of all
//          transfers and collectives of a kind. A cause explains as much of (as run - ideal) as its removal saves; the
//          shares overlap, so they need not add up to 1, and one above 1 means that the ideal, a mean, has the cause
//          in it. Of several slow workers and pipelines, each explains what it alone would cost: they hide each other.
//          Rules before a worker is named: it is slower than the same stage of other pipelines, by more than its whole
//          pipeline is, in the median of all steps. A stage is unequal if its usual worker is slower than the usual
//          stage. So one pipeline alone shows no slow worker. Steps of more than kLong times the usual one (warm-up, a
//          hang) are one cause, and are left out of all others and of the means. Without drift, all steps compute like
//          the first; without long sequences, all microbatches take the mean; a slow pipeline gets as fast as the usual
//          one (shared_factors.h). The ideal step has no drift either.
// Input:   a job of understand().
// Output:  causes that explain at least kLeastShare, largest first.
// Cost:    one replay of all steps per candidate, two per slow worker or pipeline if there are several.
// Source:  "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025), section 3.
#pragma once

#include <compare>
#include <optional>
#include <string_view>
#include <vector>

#include "evaluation/what_if/traced_job.h"
#include "evaluation/what_if/traced_times.h"

namespace perseus::what_if {

enum class CauseKind {
  worker,
  pipeline,
  stage,
  steps,
  drift,
  long_sequences,
  variation,
  links,
  collectives,
  pauses,
  gaps
};
std::string_view name_of(CauseKind kind);

/// Transfers between the stages `boundary` and `boundary` + 1.
struct TracedLink {
  int boundary = 0;
  bool forward = true;
  int pipeline = -1;  ///< -1: of all
  auto operator<=>(const TracedLink&) const = default;
};

struct SlowdownCause {
  CauseKind kind = CauseKind::worker;
  TracedWorker worker{-1, -1};  ///< of worker; the pipeline of pipeline
  int stage = -1;               ///< of worker and stage
  /// worker, pipeline, stage: its computing time over that of its peers; steps: the longest over the usual one; drift:
  /// the last step over the first; long_sequences: the time of long microbatches (one of 20) over the mean.
  double factor = 1;
  double without_s = 0;         ///< mean step time without it
  double share = 0;             ///< of (as run - ideal) that its removal saves
  std::vector<int> steps = {};  ///< numbers of the few steps that hold most of it; of steps: those
  /// Where most of it is, if it is: worker and stage of variation and pauses, or
  std::optional<TracedLink> link = {};
  std::optional<trace::SpanKind> collective = {};
};

struct Slowdown {
  double measured_s = 0;            ///< mean step time
  std::optional<double> between_s;  ///< mean time between two steps; nothing: times_until_next() knows none
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
inline constexpr double kLong = 2;  ///< times the usual step

Slowdown explain(const TracedJob& job);

}  // namespace perseus::what_if
