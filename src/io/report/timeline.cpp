#include "io/report/timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

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

/// Effect of one measured number on an iteration.
struct Uses {
  int count = 0;
  int critical = 0;
  Watts blocking;  ///< of all computations that use the number, together
};

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

std::vector<std::vector<TimelineColumn>> columns_of(const model::ComputationDag& dag, const Timeline& timeline,
                                                    Seconds span, int columns) {
  std::vector<std::vector<TimelineColumn>> rows(dag.num_ranks(), std::vector<TimelineColumn>(columns));
  if (!(span > Seconds(0))) return rows;
  for (std::size_t i = 0; i < timeline.bars.size(); ++i) {
    const TimelineBar& bar = timeline.bars[i];
    std::vector<TimelineColumn>& row = rows[dag.computations[i].rank];
    const double from = bar.start / span * columns;
    const double to = bar.end / span * columns;
    for (int c = static_cast<int>(from); c < columns && c < to; ++c) {
      const double share = std::min<double>(to, c + 1) - std::max<double>(from, c);
      row[c].busy += share;
      row[c].power += bar.power * share;  // weighted sum, divided below
      row[c].critical |= bar.critical;
    }
  }
  for (auto& row : rows)
    for (TimelineColumn& column : row)
      if (column.busy > 0) column.power = column.power / column.busy;
  return rows;
}

std::vector<SlowLink> slow_links(const model::ComputationDag& dag) {
  constexpr double slow = 3;
  const auto ranks_of = [&](const model::Dependency& d) {
    return std::pair(dag.computations[d.before].rank, dag.computations[d.after].rank);
  };
  // Of several messages of a rank to a computation, those with a longer latency stand for transfers in a queue.
  std::map<std::pair<int, int>, Seconds> least;  // (sending rank, computation)
  for (const model::Dependency& d : dag.dependencies) {
    const auto [known, is_new] = least.try_emplace({ranks_of(d).first, d.after}, d.latency);
    if (!is_new) known->second = std::min(known->second, d.latency);
  }
  const auto is_transfer = [&](const model::Dependency& d) {
    const auto [from, to] = ranks_of(d);
    return from != to && d.latency == least.at({from, d.after});
  };
  std::vector<Seconds> latencies;
  for (const model::Dependency& d : dag.dependencies) {
    if (is_transfer(d)) latencies.push_back(d.latency);
  }
  if (latencies.empty()) return {};
  const auto middle = latencies.begin() + static_cast<std::ptrdiff_t>((latencies.size() - 1) / 2);
  std::ranges::nth_element(latencies, middle);
  const Seconds threshold = slow * *middle;
  std::map<std::pair<int, int>, SlowLink> links;
  for (const model::Dependency& d : dag.dependencies) {
    const auto [from, to] = ranks_of(d);
    if (!is_transfer(d) || d.latency <= threshold) continue;
    SlowLink& link = links.try_emplace({from, to}, SlowLink{from, to, {}}).first->second;
    link.latency = std::max(link.latency, d.latency);
    link.transfers.push_back(d);
  }
  std::vector<SlowLink> found;
  for (auto& [ranks, link] : links) found.push_back(std::move(link));
  return found;
}

bool has_spread(const model::ComputationDag& dag) {
  return std::ranges::any_of(dag.types, [](const model::ComputationType& type) {
    return std::ranges::any_of(type.options, [](const model::Measurement& m) {
      return m.time_stddev > Seconds(0) || m.energy_stddev > Joules(0);
    });
  });
}

ErrorBars error_bars_of(const model::ComputationDag& dag, const model::Plan& plan, const Timeline& timeline) {
  std::map<std::pair<int, int>, Uses> uses;  // by type and option
  const auto uses_of = [&](int i) -> Uses& { return uses[{dag.computations[i].type, plan[i]}]; };
  for (int i = 0; i < static_cast<int>(plan.size()); ++i) {
    ++uses_of(i).count;
    uses_of(i).blocking += dag.blocking_power_of(i);
  }
  for (const int i : timeline.critical_path) ++uses_of(i).critical;

  double time_variance = 0;
  double energy_variance = 0;
  for (const auto& [key, use] : uses) {
    const model::Measurement& m = dag.types[key.first].options[key.second];
    const Seconds longer = use.critical * m.time_stddev;
    const Joules waited = dag.total_blocking_power() * longer - use.blocking * m.time_stddev;
    const Joules computed = use.count * m.energy_stddev;
    time_variance += longer.value() * longer.value();
    energy_variance += waited.value() * waited.value() + computed.value() * computed.value();
  }
  return {Seconds(std::sqrt(time_variance)), Joules(std::sqrt(energy_variance))};
}

}  // namespace perseus::report
