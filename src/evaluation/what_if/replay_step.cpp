#include "evaluation/what_if/replay_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/median.h"
#include "planning/model/neighbors.h"

namespace perseus::what_if {
namespace {

using trace::SpanKind;

/// Ranks with the same group of a collective wait for each other.
std::pair<int, int> group_of(SpanKind kind, TracedWorker worker) {
  switch (kind) {
    case SpanKind::parameter_gather:
    case SpanKind::gradient_reduce:
      return {worker.rank, -1};
    case SpanKind::embedding_reduce:
      return {-1, worker.pipeline};
    case SpanKind::gradient_clip:
      return {-1, -1};
    default:
      return {worker.rank, worker.pipeline};
  }
}

/// Moves `ready` of all ranks past their collectives.
void run_collectives(const TracedStep& step, std::vector<TracedCollective> RankStep::*which, const StepTimes& times,
                     std::vector<std::vector<double>>& ready) {
  std::size_t longest = 0;
  for (const PipelineStep& p : step.pipelines) {
    for (const RankStep& rank : p.ranks) longest = std::max(longest, (rank.*which).size());
  }
  // The n-th of a kind, kinds in the order in which they start.
  std::map<std::pair<SpanKind, int>, double> starts;
  std::map<std::pair<SpanKind, int>, std::vector<std::pair<TracedWorker, const TracedCollective*>>> members;
  for (int d = 0; d < static_cast<int>(step.pipelines.size()); ++d) {
    for (int r = 0; r < static_cast<int>(step.pipelines[d].ranks.size()); ++r) {
      std::map<SpanKind, int> count;
      for (const TracedCollective& c : step.pipelines[d].ranks[r].*which) {
        const std::pair key(c.kind, count[c.kind]++);
        const auto [start, is_new] = starts.try_emplace(key, c.start_s);
        if (!is_new) start->second = std::max(start->second, c.start_s);
        members[key].push_back({{d, r}, &c});
      }
    }
  }
  std::vector<std::pair<double, std::pair<SpanKind, int>>> in_order;
  for (const auto& [key, start] : starts) in_order.emplace_back(start, key);
  std::ranges::sort(in_order);
  for (const auto& [start, key] : in_order) {
    std::map<std::pair<int, int>, double> begin;
    for (const auto& [worker, c] : members[key]) {
      double& group = begin[group_of(c->kind, worker)];
      group = std::max(group, ready[worker.pipeline][worker.rank]);
    }
    for (const auto& [worker, c] : members[key])
      ready[worker.pipeline][worker.rank] = begin[group_of(c->kind, worker)] + times.collective(*c, worker);
  }
}

}  // namespace

StepTimes measured_times() {
  return {[](const TracedOp& op, TracedWorker) { return op.duration_s; },
          [](const TracedOp& op, TracedWorker) { return op.receive_s; },
          [](const TracedOp& op, TracedWorker) { return op.send_s; },
          [](const TracedCollective& c, TracedWorker) { return c.duration_s; }};
}

StepTimes computing_alone() {
  StepTimes times = measured_times();
  times.receive = times.send = [](const TracedOp&, TracedWorker) { return 0.0; };
  return times;
}

std::vector<double> replay_pipeline(const TracedJob& job, const PipelineStep& step, int pipeline,
                                    const StepTimes& times) {
  const model::ComputationDag& dag = job.dag_of(step);
  std::vector<double> duration(dag.computations.size()), receive(duration.size()), send(duration.size());
  for (int r = 0; r < job.ranks; ++r) {
    const TracedWorker worker{pipeline, r};
    for (std::size_t k = 0; k < dag.rank_order[r].size(); ++k) {
      const TracedOp& op = step.ranks[r].ops[k];
      const int i = dag.rank_order[r][k];
      duration[i] = times.compute(op, worker);
      receive[i] = times.receive(op, worker);
      send[i] = times.send(op, worker);
    }
  }
  const auto before = model::neighbors_before<std::pair<int, int>>(
      dag, [](const model::Dependency& d) { return std::pair(d.before, d.after); });
  std::vector<double> end;
  model::longest_path(
      before, [&](int i) { return duration[i]; },
      [&](const model::Neighbor<std::pair<int, int>>& n) {
        const auto [from, to] = n.latency;
        return dag.computations[from].rank == dag.computations[to].rank ? send[from] : receive[to];
      },
      end);
  return end;
}

double replay_step(const TracedJob& job, const TracedStep& step, const StepTimes& times) {
  std::vector<std::vector<double>> ready(job.pipelines, std::vector<double>(job.ranks));
  run_collectives(step, &RankStep::before, times, ready);
  for (int d = 0; d < job.pipelines; ++d) {
    const PipelineStep& p = step.pipelines[d];
    const model::ComputationDag& dag = job.dag_of(p);
    const std::vector<double> end = replay_pipeline(job, p, d, times);
    const double start = ready[d][dag.computations.front().rank];  // of the first computation
    for (int r = 0; r < job.ranks; ++r) ready[d][r] = std::max(ready[d][r], start + end[dag.rank_order[r].back()]);
  }
  run_collectives(step, &RankStep::after, times, ready);
  double last = 0;
  for (const auto& pipeline : ready) last = std::max(last, *std::ranges::max_element(pipeline));
  return last;
}

double measured_span(const PipelineStep& step) {
  double first = HUGE_VAL, last = -HUGE_VAL;
  for (const RankStep& rank : step.ranks) {
    first = std::min(first, rank.ops.front().start_s);
    for (const TracedOp& op : rank.ops) last = std::max(last, op.end_s());
  }
  return last - first;
}

namespace {

/// Sets `errors.early` and its ranks.
void find_early(const TracedJob& job, ReplayErrors& errors) {
  std::map<std::tuple<int, int, int>, std::vector<std::pair<double, double>>>
      early;  // by pipeline, rank of the input, rank
  for (const TracedStep& step : job.steps) {
    for (int d = 0; d < job.pipelines; ++d) {
      const PipelineStep& p = step.pipelines[d];
      const model::ComputationDag& dag = job.dag_of(p);
      std::vector<const TracedOp*> ops(dag.computations.size());
      for (int r = 0; r < job.ranks; ++r) {
        for (std::size_t k = 0; k < dag.rank_order[r].size(); ++k) ops[dag.rank_order[r][k]] = &p.ranks[r].ops[k];
      }
      std::map<std::pair<int, int>, double> most;
      for (const model::Dependency& dependency : dag.dependencies) {
        const std::pair ranks(dag.computations[dependency.before].rank, dag.computations[dependency.after].rank);
        if (ranks.first == ranks.second) continue;
        const double by = ops[dependency.before]->end_s() - ops[dependency.after]->start_s;
        const auto [found, is_new] = most.try_emplace(ranks, by);
        found->second = std::max(found->second, by);
      }
      const double span = measured_span(p);
      for (const auto& [ranks, by] : most)
        early[{d, ranks.first, ranks.second}].emplace_back(span > 0 ? by / span : 0, by);
    }
  }
  for (auto& [ranks, all] : early) {
    const auto [usual, usual_s] = lower_median(std::move(all));
    const auto [pipeline, before, after] = ranks;
    if (usual > errors.early)
      errors.early = usual, errors.early_s = usual_s, errors.early_rank = {pipeline, after},
      errors.before_early = {pipeline, before};
  }
}

}  // namespace

ReplayErrors replay_errors(const TracedJob& job) {
  std::vector<double> with_links, alone;
  const StepTimes measured = measured_times(), computing = computing_alone();
  for (const TracedStep& step : job.steps) {
    for (int d = 0; d < job.pipelines; ++d) {
      const PipelineStep& p = step.pipelines[d];
      const double span = measured_span(p);
      if (span <= 0) continue;
      for (const auto& [times, errors] : {std::pair(&measured, &with_links), std::pair(&computing, &alone)}) {
        const std::vector<double> end = replay_pipeline(job, p, d, *times);
        errors->push_back(std::abs(*std::ranges::max_element(end) / span - 1));
      }
    }
  }
  if (alone.empty()) return {};
  ReplayErrors errors;
  errors.with_links = median(with_links);
  errors.computing_alone = median(alone);
  find_early(job, errors);
  return errors;
}

}  // namespace perseus::what_if
