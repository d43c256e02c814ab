#include "io/report/timeline.h"

#include <algorithm>

#include "planning/model/neighbors.h"

namespace perseus::report {
namespace {

const model::Measurement& option_of(const model::ComputationDag& dag, const model::Plan& plan, int i) {
  return dag.type_of(i).options[plan[i]];
}

Joules effective_energy_of(const model::Measurement& option, Watts blocking_power) {
  return option.energy - blocking_power * option.time;
}

using Before = model::Neighbors<Seconds>;

void measure_bars(const model::ComputationDag& dag, const model::Plan& plan, const Before& before, Timeline& timeline) {
  const auto duration_of = [&](int i) { return option_of(dag, plan, i).time; };
  std::vector<Seconds> end, latest_start;
  timeline.makespan = model::longest_path(before, duration_of, end);
  const auto after = model::neighbors_after<Seconds>(dag, &model::Dependency::latency);
  model::latest_starts(after, duration_of, timeline.makespan, latest_start);
  for (int i = 0; i < before.num_nodes(); ++i) {
    const model::Measurement& option = option_of(dag, plan, i);
    TimelineBar& bar = timeline.bars[i];
    bar.start = model::earliest_start(before, i, end);
    bar.end = end[i];
    bar.slack = std::max(Seconds(0), latest_start[i] - bar.start);
    bar.energy = option.energy;
    bar.power = option.energy / option.time;
    timeline.effective_energy += effective_energy_of(option, dag.blocking_power_of(i));
  }
  timeline.energy = timeline.effective_energy + dag.total_blocking_power() * timeline.makespan;
}

void mark_critical_path(const model::ComputationDag& dag, const Before& before, Timeline& timeline) {
  const auto last = std::ranges::max_element(timeline.bars, {}, &TimelineBar::end);
  int i = last == timeline.bars.end() ? -1 : static_cast<int>(last - timeline.bars.begin());
  while (i >= 0) {
    timeline.bars[i].critical = true;
    timeline.critical_path.push_back(i);
    int previous = -1;
    for (const auto& [from, dependency, latency] : before.of(i)) {
      // Exact: the start is the maximum of these very sums.
      if (timeline.bars[from].end + latency != timeline.bars[i].start) continue;
      const bool same_rank = dag.computations[from].rank == dag.computations[i].rank;
      if (previous < 0 || same_rank) previous = from;
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
  const Before before = model::neighbors_before<Seconds>(dag, &model::Dependency::latency);
  measure_bars(dag, plan, before, timeline);
  mark_critical_path(dag, before, timeline);
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
