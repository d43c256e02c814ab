// A training job as its timeline shows it: steps of pipelines of ranks, the order of each rank, and the DAG of a step.
//
// Problem: a timeline is a heap of named intervals. Which computation waits for which?
// Method:  spans are sorted per step and rank (step_spans.h); a rank's order of computations is compared with the named
//          schedules; build_dag() gives the dependencies. Stages that the timeline does not name follow from the order
//          (step_spans.h, stages_by_order.h). The transfers of a rank belong to its computations in the order of time.
//          Clocks of ranks are aligned (clock_offsets.h).
// Shape:   steps in ascending order; pipelines[d] is that of data-parallel rank d; ranks[r].ops[k] is computation
//          rank_order[r][k] of the pipeline's order. All steps have the same pipelines, ranks and microbatches.
// Units:   seconds. Of several tensor-parallel ranks, a computation has the longest time.
// Errors:  invalid_input: no complete step; ranks that the timeline and the options do not place; times that are no
//          microseconds.
// Cost:    O(spans log spans).
// Source:  paper section 4.1; "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025).
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evaluation/what_if/clock_offsets.h"
#include "io/trace/span.h"
#include "planning/model/computation_dag.h"
#include "planning/model/profile.h"
#include "planning/model/schedule.h"

namespace perseus::what_if {

inline constexpr const char* kGeneric = "generic";  ///< the schedule of an order without a name

struct TracedOp {
  model::Action action;
  double start_s = 0;
  double duration_s = 0;
  double receive_s = 0;       ///< transfer of its input
  double receive_bytes = -1;  ///< of that transfer; -1: the timeline does not say
  double send_s = 0;          ///< transfer of its result, if ranks wait for their sends
  double pause_s = 0;         ///< garbage collection within it, part of the duration
  [[nodiscard]] double end_s() const { return start_s + duration_s; }
};

struct TracedCollective {
  trace::SpanKind kind = trace::SpanKind::optimizer;
  double start_s = 0;
  double duration_s = 0;
};

/// One rank of one pipeline in one step.
struct RankStep {
  double start_s = HUGE_VAL, end_s = -HUGE_VAL;  ///< of all its spans
  std::vector<TracedOp> ops;                     ///< in execution order
  std::vector<TracedCollective> before, after;   ///< the computations, in the order of time
  double communicating_s = 0;                    ///< transfers and collectives while it does not compute
};

struct PipelineStep {
  int order = 0;  ///< of TracedJob::orders
  std::vector<RankStep> ranks;
};

struct TracedStep {
  int number = 0;
  std::vector<PipelineStep> pipelines;
  [[nodiscard]] double start_s() const;
  [[nodiscard]] double end_s() const;
  [[nodiscard]] double time_s() const { return end_s() - start_s(); }
};

/// An order of the computations of a pipeline, and its DAG: types have one option, the mean time.
/// A rank of a pipeline.
struct TracedWorker {
  int pipeline = 0;
  int rank = 0;
  bool operator==(const TracedWorker&) const = default;
};

struct TracedOrder {
  model::Schedule schedule;  ///< its name: that of a named schedule, or "generic"
  model::ComputationDag dag;
  long pipelines = 0;  ///< that ran so, over all steps
};

struct TracedJob {
  int pipelines = 0, ranks = 0, stages = 0, microbatches = 0, tensor_parallel = 1;
  std::vector<TracedOrder> orders;  ///< most frequent first
  std::vector<TracedStep> steps;    ///< complete ones
  int incomplete_steps = 0;
  std::vector<std::string> faults;  ///< "step 3: ...", the first different ones
  std::vector<ClockOffset> clocks;
  bool all_in_one = false;           ///< neither timeline nor degrees say how long a pipeline is: all ranks are one
  bool guesses_steps = false;        ///< the timeline numbers none: a microbatch that comes again begins the next
  bool counts_microbatches = false;  ///< the timeline numbers none: they count in the order of time
  bool guesses_stages = false;       ///< it names none, but the order of computations tells several of a rank apart
  bool has_transfers = false;
  bool senders_wait = false;  ///< sends end before their rank computes again
  [[nodiscard]] const model::Schedule& schedule() const { return orders.front().schedule; }
  [[nodiscard]] const model::ComputationDag& dag_of(const PipelineStep& p) const { return orders[p.order].dag; }
};

/// JobDegrees that a timeline may not show; nothing: all ranks are one pipeline, tensor-parallel ranks are one.
struct JobDegrees {
  std::optional<int> pipeline_parallel;
  int tensor_parallel = 1;
};

Result<TracedJob> understand(const trace::TraceSpans& timeline, const JobDegrees& degrees = {});

/// Mean times per stage and instruction as a profile of one clock; energies are unknown, 1 J.
model::Profile mean_profile(const TracedJob& job);

/// Every rank of every step: visit(rank's step, worker, index of the step).
template <class Visit>
void for_each_rank(const TracedJob& job, Visit visit) {
  for (int s = 0; s < static_cast<int>(job.steps.size()); ++s) {
    for (int d = 0; d < job.pipelines; ++d) {
      for (int r = 0; r < job.ranks; ++r) visit(job.steps[s].pipelines[d].ranks[r], TracedWorker{d, r}, s);
    }
  }
}

/// Every computation: visit(computation, worker, index of its step).
template <class Visit>
void for_each_op(const TracedJob& job, Visit visit) {
  for_each_rank(job, [&](const RankStep& rank, TracedWorker worker, int s) {
    for (const TracedOp& op : rank.ops) visit(op, worker, s);
  });
}

}  // namespace perseus::what_if
