#include "evaluation/calibration/timed_pipeline.h"

#include <algorithm>

namespace perseus::calibration {

TimedPipeline::TimedPipeline(const model::ComputationDag& dag, const LinkModel& links) : links_(links) {
  const std::size_t n = dag.computations.size();
  for (const model::ComputationType& type : dag.types) {
    if (type.instruction == name_of(model::Instruction::load)) loading_stages_.push_back(type.stage);
  }
  scaled_by_.assign(n, -1);
  for (std::size_t i = 0; i < n; ++i) {
    const model::ComputationType& type = dag.type_of(static_cast<int>(i));
    if (type.instruction == name_of(model::Instruction::load)) {
      const auto found = std::ranges::find(loading_stages_, type.stage);
      scaled_by_[i] = num_latencies() + static_cast<int>(found - loading_stages_.begin());
    } else if (type.instruction == name_of(model::Instruction::optimizer_step)) {
      scaled_by_[i] = tail_unknown();
    }
  }
  // The link that a computation sends over. A blocking sender has its latency on its own rank's next edge as well.
  std::vector<int> sends_over(n, -1);
  for (const model::Dependency& d : dag.dependencies) {
    const int from = dag.computations[d.before].rank, to = dag.computations[d.after].rank;
    if (from != to) sends_over[d.before] = links.latency_of(from, to);
  }
  first_edge_.assign(n + 1, 0);
  for (const model::Dependency& d : dag.dependencies) ++first_edge_[d.after + 1];
  for (std::size_t i = 0; i < n; ++i) first_edge_[i + 1] += first_edge_[i];
  std::vector<int> filled(first_edge_.begin(), first_edge_.end() - 1);
  edges_.resize(dag.dependencies.size());
  for (const model::Dependency& d : dag.dependencies)
    edges_[filled[d.after]++] = {d.before, d.latency > Seconds(0) ? sends_over[d.before] : -1};
  end_.resize(n);
  critical_edge_.resize(n);
}

TimedPipeline::Makespan TimedPipeline::at(std::span<const double> durations, std::span<const double> unknowns) {
  const int n = static_cast<int>(end_.size());
  const auto factor_of = [&](int i) { return scaled_by_[i] == tail_unknown() ? 1.0 : durations[i]; };
  int last = 0;
  for (int i = 0; i < n; ++i) {
    double start = 0;
    int critical = -1;
    for (int e = first_edge_[i]; e < first_edge_[i + 1]; ++e) {
      const Edge& edge = edges_[e];
      const double arrival = end_[edge.before] + (edge.latency >= 0 ? unknowns[edge.latency] : 0);
      if (arrival > start || critical == -1) {
        start = arrival;
        critical = e;
      }
    }
    critical_edge_[i] = critical;
    end_[i] = start + (scaled_by_[i] == -1 ? durations[i] : factor_of(i) * unknowns[scaled_by_[i]]);
    if (end_[i] > end_[last]) last = i;
  }
  Makespan makespan{end_[last], std::vector<double>(num_unknowns())};
  for (int i = last; i != -1;) {
    if (scaled_by_[i] != -1) makespan.gradient[scaled_by_[i]] += factor_of(i);
    const int e = critical_edge_[i];
    if (e != -1 && edges_[e].latency >= 0) makespan.gradient[edges_[e].latency] += 1;
    i = e == -1 ? -1 : edges_[e].before;
  }
  return makespan;
}

}  // namespace perseus::calibration
