#include "io/report/timeline.h"

#include <algorithm>

namespace perseus::report {
namespace {

/// Dependencies grouped by the computation at one of their ends.
struct Adjacency {
  std::vector<int> first;  // of computation i: edges[first[i]] .. edges[first[i + 1]]
  std::vector<int> edges;

  Adjacency(const model::ComputationDag& dag, int model::Dependency::*end) : first(dag.computations.size() + 1, 0) {
    for (const model::Dependency& d : dag.dependencies) ++first[d.*end + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    edges.resize(dag.dependencies.size());
    std::vector<int> next(first.begin(), first.end() - 1);
    for (int e = 0; e < static_cast<int>(dag.dependencies.size()); ++e) edges[next[dag.dependencies[e].*end]++] = e;
  }
};

const model::Measurement& option_of(const model::ComputationDag& dag, const model::Plan& plan, int i) {
  return dag.type_of(i).options[plan[i]];
}

Joules effective_energy_of(const model::Measurement& option, Watts blocking_power) {
  return option.energy - blocking_power * option.time;
}

void schedule_earliest(const model::ComputationDag& dag, const model::Plan& plan, const Adjacency& into,
                       Timeline& timeline) {
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    TimelineBar& bar = timeline.bars[i];
    for (int k = into.first[i]; k < into.first[i + 1]; ++k) {
      const model::Dependency& d = dag.dependencies[into.edges[k]];
      bar.start = std::max(bar.start, timeline.bars[d.before].end + d.latency);
    }
    const model::Measurement& option = option_of(dag, plan, i);
    bar.end = bar.start + option.time;
    bar.energy = option.energy;
    bar.power = option.energy / option.time;
    timeline.makespan = std::max(timeline.makespan, bar.end);
    timeline.effective_energy += effective_energy_of(option, dag.blocking_power_of(i));
  }
  timeline.energy = timeline.effective_energy + dag.total_blocking_power() * timeline.makespan;
}

void measure_slack(const model::ComputationDag& dag, Timeline& timeline) {
  const Adjacency out_of(dag, &model::Dependency::before);
  std::vector<Seconds> latest_end(timeline.bars.size(), timeline.makespan);
  for (int i = static_cast<int>(timeline.bars.size()) - 1; i >= 0; --i) {
    for (int k = out_of.first[i]; k < out_of.first[i + 1]; ++k) {
      const model::Dependency& d = dag.dependencies[out_of.edges[k]];
      const TimelineBar& after = timeline.bars[d.after];
      latest_end[i] = std::min(latest_end[i], after.start + after.slack - d.latency);
    }
    timeline.bars[i].slack = std::max(Seconds(0), latest_end[i] - timeline.bars[i].end);
  }
}

void mark_critical_path(const model::ComputationDag& dag, const Adjacency& into, Timeline& timeline) {
  const auto last = std::ranges::max_element(timeline.bars, {}, &TimelineBar::end);
  int i = last == timeline.bars.end() ? -1 : static_cast<int>(last - timeline.bars.begin());
  while (i >= 0) {
    timeline.bars[i].critical = true;
    timeline.critical_path.push_back(i);
    int previous = -1;
    for (int k = into.first[i]; k < into.first[i + 1]; ++k) {
      const model::Dependency& d = dag.dependencies[into.edges[k]];
      // Exact: the start is the maximum of these very sums.
      if (timeline.bars[d.before].end + d.latency != timeline.bars[i].start) continue;
      const bool same_rank = dag.computations[d.before].rank == dag.computations[i].rank;
      if (previous < 0 || same_rank) previous = d.before;
    }
    i = previous;
  }
  std::ranges::reverse(timeline.critical_path);
}

}  // namespace

Timeline timeline_of(const model::ComputationDag& dag, const model::Plan& plan) {
  PERSEUS_CHECK(plan.size() == dag.computations.size(), "a plan has one option per computation");
  Timeline timeline;
  timeline.bars.resize(dag.computations.size());
  const Adjacency into(dag, &model::Dependency::after);
  schedule_earliest(dag, plan, into, timeline);
  measure_slack(dag, timeline);
  mark_critical_path(dag, into, timeline);
  return timeline;
}

double PowerRange::position(Watts power) const {
  return high > low ? std::clamp((power - low) / (high - low), 0.0, 1.0) : 0.0;
}

PowerRange PowerRange::joined(PowerRange other) const { return {std::min(low, other.low), std::max(high, other.high)}; }

PowerRange power_range_of(const model::ComputationDag& dag, const Timeline& timeline) {
  Watts low = Watts(0);
  for (std::size_t r = 0; r < dag.accelerators.size(); ++r) {
    const Watts waiting = dag.blocking_power * dag.accelerators[r];
    low = r == 0 ? waiting : std::min(low, waiting);
  }
  Watts high = low;
  for (const TimelineBar& bar : timeline.bars) high = std::max(high, bar.power);
  return {low, high};
}

}  // namespace perseus::report
