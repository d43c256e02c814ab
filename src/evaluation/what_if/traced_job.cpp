#include "evaluation/what_if/traced_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/median.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"

namespace perseus::what_if {
namespace {

using model::Instruction;
using trace::Span;
using trace::SpanKind;

constexpr double kMostBeside = 0.1;      ///< share of sends beside which a rank computes that waits for its sends
constexpr double kLeastTime_s = 1e-9;    ///< of a computation in a DAG
constexpr int kMostChunks = 16;          ///< stages a rank that the order alone may show
constexpr int kShownFaults = 3;          ///< of steps that are left out
constexpr double kMostOverlap = 0.1;     ///< of two computations of a rank, over the shorter one
constexpr double kLeastMedian_s = 1e-6;  ///< of computations: below, times are hardly microseconds

Error invalid(std::string message) { return {ErrorCode::invalid_input, std::move(message)}; }

/// The kinds of computations and their instructions have the same order.
Instruction instruction_of(SpanKind kind) { return static_cast<Instruction>(kind); }
static_assert(static_cast<int>(SpanKind::pure_backward) == static_cast<int>(Instruction::pure_backward));

/// The spans of one rank of one pipeline in one step, in the order of time.
struct RankSpans {
  std::vector<Span> computing, communicating, pauses;
};
using Ranks = std::map<std::pair<int, int>, RankSpans>;  // by pipeline and rank
using Steps = std::map<int, Ranks>;

class Understanding {
 public:
  Understanding(const trace::TraceSpans& timeline, const JobDegrees& degrees)
      : timeline_(timeline), degrees_(degrees) {}

  Result<TracedJob> run() {
    if (Status status = place_threads(); !status) return status.error();
    if (Status status = check_unit(); !status) return status.error();
    Steps steps = sorted_steps();
    find_shape(steps);
    find_stages(steps);
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

  Status check_unit() const {
    std::vector<double> times;
    for (const Span& s : timeline_.spans) {
      if (is_compute(s.kind)) times.push_back(s.duration_s);
    }
    if (times.empty()) return Ok{};
    if (const double middle = median(std::move(times)); middle < kLeastMedian_s)
      return invalid(
          fmt::format("computations take {:.3g} microseconds in their median; expected at least 1: are ts and "
                      "dur in microseconds?",
                      1e6 * middle));
    return Ok{};
  }

  Status place_threads() {
    int world = timeline_.world_size;
    for (const trace::ThreadPlace& place : timeline_.threads) world = std::max(world, place.global + 1);
    const int ranks = degrees_.pipeline_parallel.value_or(std::max(1, world / degrees_.tensor_parallel));
    const int per_stage = std::max(1, world / std::max(1, ranks));
    if (world > 0 && (ranks * per_stage != world || per_stage % degrees_.tensor_parallel != 0))
      return invalid(fmt::format("{} ranks; expected a multiple of pipeline_parallel {} x tensor_parallel {}", world,
                                 ranks, degrees_.tensor_parallel));
    for (trace::ThreadPlace place : timeline_.threads) {
      if (place.global >= 0) {  // pipeline-parallel ranks are outermost, tensor-parallel ones innermost
        job_.all_in_one |= place.rank < 0 && world > 1 && !degrees_.pipeline_parallel;
        if (place.rank < 0) place.rank = place.global / per_stage;
        if (place.data < 0) place.data = place.global % per_stage / degrees_.tensor_parallel;
        if (place.tensor < 0) place.tensor = place.global % degrees_.tensor_parallel;
      }
      places_.push_back({std::max(place.data, 0), std::max(place.rank, 0), std::max(place.tensor, 0), 0, place.file});
    }
    std::set<std::pair<int, int>> seen;
    std::map<int, int> file_of;  // a rank's first
    std::string same;
    for (std::size_t t = 0; t < places_.size(); ++t) {
      seen.emplace(places_[t].data, places_[t].rank);
      const int global = timeline_.threads[t].global, file = places_[t].file;
      const int first = file_of.try_emplace(global, file).first->second;
      if (global >= 0 && first != file && same.empty())
        same = fmt::format("; {} and {} are both of rank {}", timeline_.files[first], timeline_.files[file], global);
    }
    const int expected = ranks * per_stage / degrees_.tensor_parallel;
    if (timeline_.world_size > 0 && std::ssize(seen) != expected)
      return invalid(
          fmt::format("timelines of {} of {} ranks (the files say a world size of {}); expected all, or one "
                      "of each tensor-parallel group and their degree{}",
                      seen.size(), expected, timeline_.world_size, same));
    return Ok{};
  }

  /// Spans by step, pipeline and rank. Those that lack a step or a microbatch get it by their order.
  Steps sorted_steps() {
    std::vector<Span> spans = timeline_.spans;
    std::ranges::stable_sort(spans, {}, &Span::start_s);
    std::map<std::pair<int, int>, std::pair<int, std::set<std::tuple<SpanKind, int, int>>>> open;  // by thread's place
    std::map<std::tuple<int, int, int, SpanKind, int>, int> counts;
    std::map<int, int> first_tensor;
    Steps steps;
    job_.counts_microbatches = true;
    for (Span& s : spans) {
      if (is_compute(s.kind)) {
        job_.counts_microbatches = job_.counts_microbatches && s.microbatch < 0;
        names_stages_ = names_stages_ || std::max<int>(s.stage, s.chunk) >= 0;
      }
      const trace::ThreadPlace& place = places_[s.thread];
      const std::pair key(place.data, place.rank);
      job_.tensor_parallel = std::max({job_.tensor_parallel, place.tensor + 1, degrees_.tensor_parallel});
      if (s.step < 0) {  // a computation that comes again begins the next step
        job_.guesses_steps |= is_compute(s.kind);
        auto& [step, seen] = open[key];
        if (is_compute(s.kind) && s.microbatch >= 0 && place.tensor == 0 &&
            !seen.emplace(s.kind, std::max<int>(s.stage, s.chunk), s.microbatch).second) {
          ++step;
          seen = {{s.kind, std::max<int>(s.stage, s.chunk), s.microbatch}};
        }
        s.step = step;
      }
      if (is_compute(s.kind) && s.microbatch < 0) {
        const int local = std::max<int>(s.stage, s.chunk) * 4096 + place.tensor;
        s.microbatch = static_cast<std::int16_t>(counts[{s.step, place.data, place.rank, s.kind, local}]++);
      }
      RankSpans& rank = steps[s.step][key];
      if (is_compute(s.kind)) {
        add_computation(rank.computing, s);
      } else if (place.tensor == 0) {
        (s.kind == SpanKind::garbage_collection ? rank.pauses : rank.communicating).push_back(s);
      }
    }
    return steps;
  }

  void add_computation(std::vector<Span>& computing, const Span& s) const {
    if (job_.tensor_parallel > 1) {
      const auto same = std::ranges::find_if(computing, [&](const Span& other) {
        return other.kind == s.kind && other.microbatch == s.microbatch && other.stage == s.stage &&
               other.chunk == s.chunk && places_[other.thread].tensor != places_[s.thread].tensor;
      });
      if (same != computing.end()) {
        same->duration_s = std::max(same->duration_s, s.duration_s);
        return;
      }
    }
    computing.push_back(s);
  }

  /// Pipelines, ranks, stages, and the number of microbatches that most steps have.
  void find_shape(const Steps& steps) {
    std::map<int, int> microbatches;
    int chunks = 1, largest_stage = -1;
    double first_chunk1_of_rank0 = HUGE_VAL, first_chunk1_of_last = HUGE_VAL;
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
    for (const auto& [place, spans] : steps.begin()->second) {
      for (const Span& s : spans.computing) {
        if (s.kind != SpanKind::forward || s.chunk != 1) continue;
        double& first = place.second == 0 ? first_chunk1_of_rank0 : first_chunk1_of_last;
        if (place.second == 0 || place.second == job_.ranks - 1) first = std::min(first, s.start_s);
      }
    }
    is_v_shaped_ = chunks == 2 && first_chunk1_of_last < first_chunk1_of_rank0;
  }

  /// All steps with as many computations run them in the kinds of this schedule.
  [[nodiscard]] bool fits(const Steps& steps, const model::Schedule& schedule) const {
    for (const auto& [number, ranks] : steps) {
      if (!is_whole(ranks)) continue;
      for (const auto& [place, spans] : ranks) {
        const bool same = std::ranges::equal(
            spans.computing, schedule.ranks[place.second], {}, [](const Span& s) { return instruction_of(s.kind); },
            &model::Action::instruction);
        if (!same) return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool is_whole(const Ranks& ranks) const {
    return std::ssize(ranks) == job_.pipelines * job_.ranks && std::ranges::all_of(ranks, [this](const auto& rank) {
             return std::ssize(rank.second.computing) == 2 * job_.microbatches;
           });
  }

  /// The stages of a timeline that names none, from the order of the only schedule that fits.
  void find_stages(Steps& steps) {
    const auto whole = [this](const auto& step) { return is_whole(step.second); };
    if (names_stages_ || !job_.counts_microbatches || job_.ranks < 2 || std::ranges::none_of(steps, whole)) return;
    std::vector<model::Schedule> fitting;
    for (int chunks = 1; chunks <= std::min(job_.microbatches, kMostChunks); ++chunks) {
      if (job_.microbatches % chunks != 0) continue;
      for (const std::string& name : model::schedule_names()) {
        const auto schedule = model::make_schedule(name, {job_.ranks, job_.microbatches / chunks, chunks});
        if (!schedule || schedule->num_stages != job_.ranks * chunks || !fits(steps, *schedule)) continue;
        if (chunks == 1) return;
        fitting.push_back(*schedule);
      }
    }
    if (fitting.size() != 1) return;
    for (auto& [number, ranks] : steps) {
      if (!is_whole(ranks)) continue;
      for (auto& [place, spans] : ranks) {
        for (std::size_t k = 0; k < spans.computing.size(); ++k) {
          const model::Action& action = fitting.front().ranks[place.second][k];
          spans.computing[k].stage = static_cast<std::int16_t>(action.stage);
          spans.computing[k].microbatch = static_cast<std::int16_t>(action.microbatch);
        }
      }
    }
    job_.stages = fitting.front().num_stages;
    job_.microbatches = fitting.front().num_microbatches;
    job_.guesses_stages = true;
  }

  [[nodiscard]] int stage_of(const Span& s, int rank) const {
    if (s.stage >= 0) return s.stage;
    if (s.chunk <= 0) return rank;
    return is_v_shaped_ ? 2 * job_.ranks - 1 - rank : s.chunk * job_.ranks + rank;
  }

  /// The fault of a pipeline in a step: two files with the same computation, one that is missing, or else `message`.
  [[nodiscard]] Error fault_in(const Ranks& ranks, int pipeline, const std::string& message) const {
    std::set<std::tuple<int, int, bool>> seen;  // stage, microbatch, forward
    for (const auto& [place, spans] : ranks) {
      if (place.first != pipeline) continue;
      std::map<std::tuple<SpanKind, int, int>, int> file_of;
      for (const Span& s : spans.computing) {
        const int stage = stage_of(s, place.second), file = places_[s.thread].file;
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
  Result<TracedStep> step_of(int number, const Ranks& ranks) {
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
  const JobDegrees& degrees_;
  std::vector<trace::ThreadPlace> places_;
  bool is_v_shaped_ = false, names_stages_ = false;
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
  return Understanding(timeline, degrees).run();
}

model::Profile mean_profile(const TracedJob& job) {
  std::map<std::pair<int, Instruction>, std::vector<double>> times;
  for (const TracedStep& step : job.steps) {
    for (const PipelineStep& pipeline : step.pipelines) {
      for (const RankStep& rank : pipeline.ranks) {
        for (const TracedOp& op : rank.ops) times[{op.action.stage, op.action.instruction}].push_back(op.duration_s);
      }
    }
  }
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
