#include "evaluation/calibration/timed_pipeline.h"

#include <algorithm>

namespace perseus::calibration {

TimedPipeline::TimedPipeline(const model::ComputationDag& dag, const LinkModel& links) : links_(links) {
  const std::size_t n = dag.computations.size();
  for (const model::ComputationType& type : dag.types) {
    if (type.instruction == name_of(model::Instruction::load)) loading_stages_.push_back(type.stage);
  }
  scaled_by_.assign(n, kNoUnknown);
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
  std::vector<int> sends_over(n, kNoUnknown);
  for (const model::Dependency& d : dag.dependencies) {
    const int from = dag.computations[d.before].rank, to = dag.computations[d.after].rank;
    if (from != to) sends_over[d.before] = links.latency_of(from, to);
  }
  before_ = model::neighbors_before<int>(
      dag, [&](const model::Dependency& d) { return d.latency > Seconds(0) ? sends_over[d.before] : kNoUnknown; });
}

TimedPipeline::Makespan TimedPipeline::at(std::span<const double> durations, std::span<const double> unknowns) {
  const auto factor_of = [&](int i) { return scaled_by_[i] == tail_unknown() ? 1.0 : durations[i]; };
  const auto duration_of = [&](int i) {
    return scaled_by_[i] == kNoUnknown ? durations[i] : factor_of(i) * unknowns[scaled_by_[i]];
  };
  const auto latency_of = [&](const model::Neighbor<int>& b) {
    return b.latency == kNoUnknown ? 0.0 : unknowns[b.latency];
  };
  Makespan makespan{model::longest_path(before_, duration_of, latency_of, end_), std::vector<double>(num_unknowns())};
  for (int i = static_cast<int>(std::ranges::max_element(end_) - end_.begin());;) {
    if (scaled_by_[i] != kNoUnknown) makespan.gradient[scaled_by_[i]] += factor_of(i);
    const auto before = before_.of(i);
    if (before.empty()) break;
    const auto critical = std::ranges::max_element(
        before, {}, [&](const model::Neighbor<int>& b) { return end_[b.computation] + latency_of(b); });
    if (critical->latency != kNoUnknown) makespan.gradient[critical->latency] += 1;
    i = critical->computation;
  }
  return makespan;
}

}  // namespace perseus::calibration
