#include "plan/point_figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "io/report/timeline.h"
#include "planning/checker/plan_run.h"

namespace perseus::cli {
namespace {

constexpr std::array<Column, 15> kColumns{{
    {"point", [](const PointFigures& p) { return double(p.point); }, true},
    {"time_s", [](const PointFigures& p) { return p.time.value(); }},
    {"energy_j", [](const PointFigures& p) { return p.energy.value(); }},
    {"effective_energy_j", [](const PointFigures& p) { return p.effective_energy.value(); }},
    {"bound_j", [](const PointFigures& p) { return p.bound.value(); }},
    {"gap_pct", [](const PointFigures& p) { return p.gap_pct; }},
    {"average_power_w", [](const PointFigures& p) { return p.average_power.value(); }},
    {"saving_pct", [](const PointFigures& p) { return p.saving_pct; }},
    {"slowdown_pct", [](const PointFigures& p) { return p.slowdown_pct; }},
    {"clock_limit_cost_j", [](const PointFigures& p) { return p.clock_limit_cost.value(); }},
    {"clock_changes", [](const PointFigures& p) { return double(p.clock_changes); }, true},
    {"shortest_dwell_s", [](const PointFigures& p) { return p.shortest_dwell.value(); }},
    {"time_stddev_s", [](const PointFigures& p) { return p.error_bars.time_stddev.value(); }},
    {"energy_stddev_j", [](const PointFigures& p) { return p.error_bars.energy_stddev.value(); }},
    {"lateness_s", [](const PointFigures& p) { return p.lateness.value(); }},
}};

constexpr std::array<RankColumn, 2> kColumnsPerRank{{
    {"rank_clock_changes", [](const checker::ClockChanges& c) { return double(c.count); }, true},
    {"rank_shortest_dwell_s", [](const checker::ClockChanges& c) { return c.shortest_dwell.value(); }},
}};

}  // namespace

std::vector<PointFigures> figures_of(const model::ComputationDag& dag, const model::Frontier& frontier,
                                     Seconds switch_latency) {
  const report::Timeline reference = report::timeline_of(dag, model::all_maximum_clock(dag));
  const Seconds lateness = frontier.maximum_clock_noise.lateness;
  const Joules all_max = reference.energy + dag.total_blocking_power() * lateness;
  const Seconds t_max = reference.makespan + lateness;
  const bool spread = report::has_spread(dag);
  checker::PlanRunner runner(dag);
  std::vector<PointFigures> all;
  all.reserve(frontier.points.size());
  for (const model::FrontierPoint& point : frontier.points) {
    PointFigures f;
    f.point = static_cast<int>(all.size());
    f.time = point.time;
    f.energy = point.energy;
    f.effective_energy = point.effective_energy;
    f.bound = point.bound;
    f.gap_pct = point.gap_pct();
    f.average_power = point.energy / point.time;
    f.saving_pct = point.energy == all_max ? 0 : 100 * ((all_max - point.energy) / all_max);
    f.slowdown_pct = 100 * ((point.time - t_max) / t_max);
    f.shortest_dwell = point.time;
    f.lateness = point.noise.lateness;
    if (point.noise != model::ProfileNoise{}) {
      f.error_bars = {point.noise.time_stddev, point.noise.energy_stddev};
    } else if (spread) {
      f.error_bars = report::error_bars_of(dag, point.plan, report::timeline_of(dag, point.plan));
    }
    const checker::PlanRun run = runner.run(point.plan, {switch_latency});
    f.clock_limit_cost = point.clock_limit_cost;
    f.per_rank = checker::count_clock_changes(dag, point.plan, run);
    for (const checker::ClockChanges& rank : f.per_rank) {
      f.clock_changes += rank.count;
      f.shortest_dwell = std::min(f.shortest_dwell, rank.shortest_dwell);
    }
    all.push_back(std::move(f));
  }
  return all;
}

std::span<const Column> point_columns() { return kColumns; }

std::span<const RankColumn> rank_columns() { return kColumnsPerRank; }

std::string frontier_csv(const std::vector<PointFigures>& figures) {
  std::vector<std::string_view> names;
  for (const Column& column : kColumns) names.emplace_back(column.name);
  for (const RankColumn& column : kColumnsPerRank) names.emplace_back(column.name);
  std::string text = fmt::format("{}\n", fmt::join(names, ","));
  for (const PointFigures& point : figures) {
    for (const Column& column : kColumns) fmt::format_to(std::back_inserter(text), "{},", column.value(point));
    for (const RankColumn& column : kColumnsPerRank) {
      for (const checker::ClockChanges& rank : point.per_rank) {
        fmt::format_to(std::back_inserter(text), "{:.6g} ", column.value(rank));
      }
      text.back() = ',';
    }
    text.back() = '\n';
  }
  return text;
}

}  // namespace perseus::cli
