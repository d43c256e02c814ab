#include "evaluation/what_if/traced_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "evaluation/what_if/stages_by_order.h"
#include "evaluation/what_if/step_spans.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"

namespace perseus::what_if {
namespace {

using model::Instruction;
using trace::Span;
using trace::SpanKind;

constexpr double kMostBeside = 0.1;    ///< share of sends beside which a rank computes that waits for its sends
constexpr double kLeastTime_s = 1e-9;  ///< of a computation in a DAG
constexpr int kShownFaults = 3;        ///< of steps that are left out
constexpr double kMostOverlap = 0.1;   ///< of two computations of a rank, over the shorter one
Error invalid(std::string message) { return {ErrorCode::invalid_input, std::move(message)}; }

class Understanding {
 public:
  Understanding(const trace::TraceSpans& timeline, StepSpans sorted)
      : timeline_(timeline), sorted_(std::move(sorted)) {}

  Result<TracedJob> run() {
    job_.tensor_parallel = sorted_.tensor_parallel;
    job_.all_in_one = sorted_.all_in_one;
    job_.guesses_steps = sorted_.guesses_steps;
    job_.counts_microbatches = sorted_.counts_microbatches;
    job_.guesses_stages = sorted_.counts_chunks;
    find_shape();
    if (!sorted_.names_stages && job_.counts_microbatches && job_.ranks > 1) {
      if (const auto schedule = find_stages(sorted_.steps, job_.pipelines, job_.ranks, job_.microbatches)) {
        job_.stages = schedule->num_stages;
        job_.microbatches = schedule->num_microbatches;
        job_.guesses_stages = true;
      }
    }
    const std::map<int, SpansOfRanks>& steps = sorted_.steps;
    for (const auto& [number, ranks] : steps) {
      if (auto step = step_of(number, ranks)) {
        job_.steps.push_back(*std::move(step));
      } else {
        ++job_.incomplete_steps;
        const std::string& fault = step.error().message;
        const auto same = [&](const std::string& shown) { return shown.ends_with(": " + fault); };
        if (std::ssize(job_.faults) < kShownFaults && std::ranges::none_of(job_.faults, same))
          job_.faults.push_back(fmt::format("step {}: {}", number, fault));
      }
    }
    if (job_.steps.empty())
      return invalid(fmt::format(
          "{} steps, none complete; expected one with every microbatch of {} stages and {} microbatches on {} ranks of "
          "{} pipelines{}; {}",
          steps.size(), job_.stages, job_.microbatches, job_.ranks, job_.pipelines,
          job_.all_in_one ? " (without --pipeline-parallel, all ranks are one pipeline)" : "",
          fmt::join(job_.faults, "; ")));
    job_.clocks = align_clocks(job_);
    find_whether_senders_wait();
    if (Status status = add_dags(); !status) return status.error();
    return std::move(job_);
  }

 private:
  void find_whether_senders_wait() {
    long waits = 0, computes = 0;
    const auto for_each_rank = [this](auto f) {
      for (TracedStep& step : job_.steps) {
        for (PipelineStep& pipeline : step.pipelines) std::ranges::for_each(pipeline.ranks, f);
      }
    };
    for_each_rank([&](const RankStep& rank) {
      for (std::size_t k = 0; k + 1 < rank.ops.size(); ++k) {
        const TracedOp& op = rank.ops[k];
        if (op.send_s > 0) ++(rank.ops[k + 1].start_s < op.end_s() + op.send_s / 2 ? computes : waits);
      }
    });
    // A rank may also do nothing after a send because it waits for an input.
    job_.senders_wait =
        waits > 0 && static_cast<double>(computes) < kMostBeside * static_cast<double>(waits + computes);
    if (job_.senders_wait) return;
    for_each_rank([](RankStep& rank) {
      for (TracedOp& op : rank.ops) op.send_s = 0;
    });
  }

  /// Pipelines, ranks, stages, and the number of microbatches that most steps have.
  void find_shape() {
    const std::map<int, SpansOfRanks>& steps = sorted_.steps;
    std::map<int, int> microbatches;
    int chunks = 1, largest_stage = -1;
    for (const auto& [number, ranks] : steps) {
      int most = 0;
      for (const auto& [place, spans] : ranks) {
        job_.pipelines = std::max(job_.pipelines, place.first + 1);
        job_.ranks = std::max(job_.ranks, place.second + 1);
        for (const Span& s : spans.computing) {
          most = std::max(most, s.microbatch + 1);
          chunks = std::max(chunks, s.chunk + 1);
          largest_stage = std::max(largest_stage, int{s.stage});
        }
      }
      ++microbatches[most];
    }
    job_.microbatches = std::ranges::max_element(microbatches, {}, [](const auto& m) { return m.second; })->first;
    job_.stages = std::max(job_.ranks * chunks, largest_stage + 1);
    is_v_shaped_ = chunks == 2 && is_v_shaped();
  }

  /// In a V, the last rank runs both stages of the first microbatch one after the other; in a loop, it runs others in
  /// between, or waits for the second stages of the other ranks. Their clocks may differ: durations do not show it. The
  /// first step whose forwards are complete decides: where some are cut off, chunks that are counted are wrong.
  [[nodiscard]] bool is_v_shaped() const {
    const int last = job_.ranks - 1;
    for (const auto& [number, ranks] : sorted_.steps) {
      std::map<std::tuple<int, int, int>, const Span*> forwards;  // of one pipeline: by rank, chunk and microbatch
      for (const auto& [place, spans] : ranks) {
        if (place.first != 0) continue;
        for (const Span& s : spans.computing) {
          if (s.kind == SpanKind::forward && s.microbatch >= 0 && s.microbatch < job_.microbatches)
            forwards.try_emplace({place.second, std::max<int>(s.chunk, 0), s.microbatch}, &s);
        }
      }
      if (std::ssize(forwards) < 2L * job_.ranks * job_.microbatches) continue;
      const Span *const first = forwards.at({last, 0, 0}), *const second = forwards.at({last, 1, 0});
      double loop_s = 0;
      for (int r = 0; r < last; ++r) loop_s += forwards.at({r, 1, 0})->duration_s;
      return second == first + 1 && second->start_s - first->end_s() < loop_s / 2;
    }
    return false;
  }

  [[nodiscard]] int stage_of(const Span& s, int rank) const {
    if (s.stage >= 0) return s.stage;
    if (s.chunk <= 0) return rank;
    return is_v_shaped_ ? 2 * job_.ranks - 1 - rank : s.chunk * job_.ranks + rank;
  }

  /// The fault of a pipeline in a step: two files with the same computation, one that is missing, or else `message`.
  [[nodiscard]] Error fault_in(const SpansOfRanks& ranks, int pipeline, const std::string& message) const {
    std::set<std::tuple<int, int, bool>> seen;  // stage, microbatch, forward
    for (const auto& [place, spans] : ranks) {
      if (place.first != pipeline) continue;
      std::map<std::tuple<SpanKind, int, int>, int> file_of;
      for (const Span& s : spans.computing) {
        const int stage = stage_of(s, place.second), file = sorted_.places[s.thread].file;
        if (s.kind != SpanKind::weight_gradient && s.kind != SpanKind::recompute)
          seen.emplace(stage, s.microbatch, s.kind == SpanKind::forward);
        const int first = file_of.try_emplace({s.kind, stage, s.microbatch}, file).first->second;
        if (first != file)
          return invalid(fmt::format(
              "{} and {} both have {} of microbatch {} of dp {}, rank {}; expected one file of each rank",
              timeline_.files[first], timeline_.files[file], name_of(s.kind), s.microbatch, place.first, place.second));
      }
    }
    const bool too_many = seen.size() > 2 * static_cast<std::size_t>(job_.stages) * job_.microbatches;
    for (int stage = 0; stage < job_.stages && !too_many; ++stage) {
      for (int m = 0; m < job_.microbatches; ++m) {
        for (const bool forward : {true, false}) {
          if (!seen.contains({stage, m, forward}))
            return invalid(fmt::format("dp {}: no {} of microbatch {} on stage {}", pipeline,
                                       forward ? "forward" : "backward", m, stage));
        }
      }
    }
    return invalid(fmt::format("dp {}: {}", pipeline, message));
  }

  /// Computations of one rank at the same time; empty: none.
  static std::string overlap_in(const RankStep& rank, int number) {
    for (std::size_t k = 0; k + 1 < rank.ops.size(); ++k) {
      const TracedOp &op = rank.ops[k], &next = rank.ops[k + 1];
      const double both = std::min(op.end_s(), next.end_s()) - next.start_s;
      if (op.action == next.action)
        return fmt::format("rank {}: {} of microbatch {} twice", number, name_of(op.action.instruction),
                           op.action.microbatch);
      if (both > kMostOverlap * std::min(op.duration_s, next.duration_s))
        return fmt::format(
            "rank {}: {} of microbatch {} begins {:.3g} ms before {} of microbatch {} ends; expected one "
            "computation at a time",
            number, name_of(next.action.instruction), next.action.microbatch, 1e3 * (op.end_s() - next.start_s),
            name_of(op.action.instruction), op.action.microbatch);
    }
    return {};
  }

  /// Error: what the step lacks.
  Result<TracedStep> step_of(int number, const SpansOfRanks& ranks) {
    for (int d = 0; d < job_.pipelines; ++d) {
      for (int r = 0; r < job_.ranks; ++r) {
        const auto found = ranks.find({d, r});
        if (found == ranks.end() || found->second.computing.empty())
          return invalid(fmt::format("no computation of dp {}, rank {}", d, r));
      }
    }
    TracedStep step{number, std::vector<PipelineStep>(job_.pipelines)};
    for (const auto& [place, spans] : ranks) {
      auto& pipeline = step.pipelines[place.first].ranks;
      pipeline.push_back(rank_of(spans, place.second));
      if (const std::string fault = overlap_in(pipeline.back(), place.second); !fault.empty())
        return fault_in(ranks, place.first, fault);
    }
    std::vector<int> orders;
    for (int d = 0; d < job_.pipelines; ++d) {
      const auto order = order_of(step.pipelines[d]);
      if (!order) return fault_in(ranks, d, order.error().message);
      orders.push_back(*order);
    }
    for (int d = 0; d < job_.pipelines; ++d) {
      step.pipelines[d].order = orders[d];
      ++job_.orders[orders[d]].pipelines;
    }
    return step;
  }

  RankStep rank_of(const RankSpans& spans, int rank) {
    RankStep step;
    for (const Span& s : spans.computing)
      step.ops.push_back({{instruction_of(s.kind), stage_of(s, rank), s.microbatch}, s.start_s, s.duration_s});
    if (step.ops.empty()) return step;
    for (const std::vector<Span>* all : {&spans.computing, &spans.communicating}) {
      for (const Span& s : *all) {
        step.start_s = std::min(step.start_s, s.start_s);
        step.end_s = std::max(step.end_s, s.end_s());
      }
    }
    for (const Span& s : spans.communicating) {
      if (s.kind == SpanKind::receive) wait_for(s, step.ops);
    }
    add_transfers(step, spans.communicating);
    for (const Span& s : spans.pauses) {
      const auto after = std::ranges::find_if(step.ops, [&](const TracedOp& op) { return op.end_s() > s.start_s; });
      if (after != step.ops.end() && after->start_s <= s.start_s)
        after->pause_s += std::min<double>(s.duration_s, after->end_s() - s.start_s);
    }
    double covered_until = -HUGE_VAL;
    auto op = step.ops.begin();
    for (const Span& s : spans.communicating) {
      if (s.kind == SpanKind::receive) continue;  // waiting
      if (is_collective(s.kind)) {
        if (s.start_s < step.ops.front().start_s) {
          step.before.push_back({s.kind, s.start_s, s.duration_s});
        } else if (s.end_s() > step.ops.back().end_s()) {
          step.after.push_back({s.kind, s.start_s, s.duration_s});
        }
      }
      double from = std::max(s.start_s, covered_until);
      covered_until = std::max(covered_until, s.end_s());
      while (op != step.ops.end() && op->end_s() <= from) ++op;
      for (auto o = op; o != step.ops.end() && o->start_s < s.end_s(); ++o) {
        step.communicating_s += std::max(0.0, o->start_s - from);
        from = std::max(from, o->end_s());
      }
      step.communicating_s += std::max(0.0, s.end_s() - from);
    }
    return step;
  }

  /// The computation that the receive begins in computes from its end on.
  static void wait_for(const Span& receive, std::vector<TracedOp>& ops) {
    const auto op = std::ranges::find_if(ops, [&](const TracedOp& o) { return o.end_s() > receive.start_s; });
    if (op == ops.end() || op->start_s > receive.start_s || receive.end_s() > op->end_s()) return;
    op->duration_s -= receive.end_s() - op->start_s;
    op->start_s = receive.end_s();
  }

  /// The n-th transfer of a kind belongs to the n-th computation that needs one, if there are as many.
  void add_transfers(RankStep& step, const std::vector<Span>& spans) {
    for (const SpanKind kind :
         {SpanKind::forward_send, SpanKind::forward_receive, SpanKind::backward_send, SpanKind::backward_receive}) {
      const bool forward = kind == SpanKind::forward_send || kind == SpanKind::forward_receive;
      const bool sends = kind == SpanKind::forward_send || kind == SpanKind::backward_send;
      const int without = forward == sends ? job_.stages - 1 : 0;  // the stage that has no such transfer
      std::vector<TracedOp*> ops;
      for (TracedOp& op : step.ops) {
        const bool of_kind = forward ? op.action.instruction == Instruction::forward
                                     : op.action.instruction == Instruction::backward ||
                                           op.action.instruction == Instruction::input_gradient ||
                                           op.action.instruction == Instruction::pure_backward;
        if (of_kind && op.action.stage != without) ops.push_back(&op);
      }
      std::vector<const Span*> transfers;
      for (const Span& s : spans) {
        if (s.kind == kind) transfers.push_back(&s);
      }
      if (transfers.size() != ops.size() || transfers.empty()) continue;
      job_.has_transfers = true;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        (sends ? ops[i]->send_s : ops[i]->receive_s) = transfers[i]->duration_s;
        if (!sends) ops[i]->receive_bytes = transfers[i]->bytes;
      }
    }
  }

  /// The order of this pipeline. Error: a computation is missing or there twice.
  Result<int> order_of(const PipelineStep& pipeline) {
    model::Schedule schedule{kGeneric, job_.stages, job_.microbatches, {}, {}};
    for (const RankStep& rank : pipeline.ranks) {
      auto& actions = schedule.ranks.emplace_back();
      for (const TracedOp& op : rank.ops) actions.push_back(op.action);
    }
    for (std::size_t o = 0; o < job_.orders.size(); ++o) {
      if (job_.orders[o].schedule.ranks == schedule.ranks) return static_cast<int>(o);
    }
    if (Status valid = schedule.validate(); !valid) return valid.error();
    for (const std::string& name : model::schedule_names()) {
      const auto known = model::make_schedule(name, {job_.ranks, job_.microbatches, job_.stages / job_.ranks});
      if (known && known->ranks == schedule.ranks) {
        schedule = *known;
        break;
      }
    }
    job_.orders.push_back({std::move(schedule), {}, 0});
    return static_cast<int>(job_.orders.size()) - 1;
  }

  Status add_dags() {
    std::vector<int> by_use(job_.orders.size());
    for (std::size_t i = 0; i < by_use.size(); ++i) by_use[i] = static_cast<int>(i);
    std::ranges::stable_sort(by_use, std::greater(), [&](int o) { return job_.orders[o].pipelines; });
    std::vector<TracedOrder> sorted;
    std::vector<int> place(by_use.size());
    for (const int o : by_use) {
      place[o] = static_cast<int>(sorted.size());
      sorted.push_back(std::move(job_.orders[o]));
    }
    job_.orders = std::move(sorted);
    for (TracedStep& step : job_.steps) {
      for (PipelineStep& p : step.pipelines) p.order = place[p.order];
    }
    const model::Profile profile = mean_profile(job_);
    for (TracedOrder& order : job_.orders) {
      auto dag = build_dag(profile, order.schedule, {});
      if (!dag) return dag.error();
      order.dag = *std::move(dag);
    }
    return Ok{};
  }

  const trace::TraceSpans& timeline_;
  StepSpans sorted_;
  bool is_v_shaped_ = false;
  TracedJob job_;
};

}  // namespace

double TracedStep::start_s() const {
  double first = HUGE_VAL;
  for (const PipelineStep& p : pipelines) {
    for (const RankStep& rank : p.ranks) first = std::min(first, rank.start_s);
  }
  return first;
}

double TracedStep::end_s() const {
  double last = -HUGE_VAL;
  for (const PipelineStep& p : pipelines) {
    for (const RankStep& rank : p.ranks) last = std::max(last, rank.end_s);
  }
  return last;
}

Result<TracedJob> understand(const trace::TraceSpans& timeline, const JobDegrees& degrees) {
  auto sorted = sort_spans(timeline, degrees);
  if (!sorted) return sorted.error();
  return Understanding(timeline, *std::move(sorted)).run();
}

model::Profile mean_profile(const TracedJob& job) {
  std::map<std::pair<int, Instruction>, std::vector<double>> times;
  for_each_op(job, [&](const TracedOp& op, TracedWorker, int) {
    times[{op.action.stage, op.action.instruction}].push_back(op.duration_s);
  });
  model::Profile profile;
  profile.accelerators.assign(job.stages, 1);
  for (const auto& [key, all] : times) {
    double sum = 0;
    for (const double t : all) sum += t;
    model::Measurement mean;
    mean.time = Seconds(std::max(sum / static_cast<double>(all.size()), kLeastTime_s));
    mean.energy = Joules(1);  // unknown
    profile.entries.push_back({key.first, std::string(name_of(key.second)), {mean}});
  }
  return profile;
}

}  // namespace perseus::what_if
