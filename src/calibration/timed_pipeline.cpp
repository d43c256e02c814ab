#include "calibration/timed_pipeline.h"

#include <algorithm>

namespace perseus {

TimedPipeline::TimedPipeline(const ComputationDag& dag) {
  const std::size_t n = dag.computations.size();
  for (const ComputationType& type : dag.types) {
    if (type.instruction == name_of(Instruction::load)) loading_stages_.push_back(type.stage);
  }
  scaled_by_.assign(n, -1);
  for (std::size_t i = 0; i < n; ++i) {
    const ComputationType& type = dag.type_of(static_cast<int>(i));
    if (type.instruction == name_of(Instruction::load)) {
      const auto found = std::ranges::find(loading_stages_, type.stage);
      scaled_by_[i] = 1 + static_cast<int>(found - loading_stages_.begin());
    } else if (type.instruction == name_of(Instruction::optimizer_step)) {
      scaled_by_[i] = tail_unknown();
    }
  }
  first_edge_.assign(n + 1, 0);
  for (const Dependency& d : dag.dependencies) ++first_edge_[d.after + 1];
  for (std::size_t i = 0; i < n; ++i) first_edge_[i + 1] += first_edge_[i];
  std::vector<int> filled(first_edge_.begin(), first_edge_.end() - 1);
  edges_.resize(dag.dependencies.size());
  for (const Dependency& d : dag.dependencies) edges_[filled[d.after]++] = {d.before, d.latency > Seconds(0)};
  end_.resize(n);
  critical_edge_.resize(n);
}

TimedPipeline::Makespan TimedPipeline::at(std::span<const double> durations, std::span<const double> unknowns) {
  const int n = static_cast<int>(end_.size());
  const auto factor_of = [&](int i) { return scaled_by_[i] == tail_unknown() ? 1.0 : durations[i]; };
  int last = 0;
  for (int i = 0; i < n; ++i) {
    double start = 0;
    critical_edge_[i] = -1;
    for (int e = first_edge_[i]; e < first_edge_[i + 1]; ++e) {
      const double arrival = end_[edges_[e].before] + (edges_[e].has_latency ? unknowns[0] : 0);
      if (arrival > start || critical_edge_[i] == -1) {
        start = arrival;
        critical_edge_[i] = e;
      }
    }
    end_[i] = start + (scaled_by_[i] == -1 ? durations[i] : factor_of(i) * unknowns[scaled_by_[i]]);
    if (end_[i] > end_[last]) last = i;
  }
  Makespan makespan{end_[last], std::vector<double>(num_unknowns())};
  for (int i = last; i != -1;) {
    if (scaled_by_[i] != -1) makespan.gradient[scaled_by_[i]] += factor_of(i);
    const int e = critical_edge_[i];
    if (e != -1 && edges_[e].has_latency) makespan.gradient[0] += 1;
    i = e == -1 ? -1 : edges_[e].before;
  }
  return makespan;
}

}  // namespace perseus
