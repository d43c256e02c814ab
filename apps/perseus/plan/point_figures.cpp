#include "plan/point_figures.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <cmath>
#include <utility>

#include "planning/checker/plan_run.h"

namespace perseus::cli {
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
    const double slower = (point.time - t_max) / t_max;
    f.slowdown_pct = std::abs(slower) < 1e-9 ? 0 : 100 * slower;  // no "-0.00"
    f.shortest_dwell = point.time;
    f.lateness = point.noise.lateness;
    if (point.noise != model::ProfileNoise{}) {
      f.error_bars = {point.noise.time_stddev, point.noise.energy_stddev};
    } else if (spread) {
      f.error_bars = report::error_bars_of(dag, point.plan, report::timeline_of(dag, point.plan));
    }
    const checker::PlanRun& run = runner.run(point.plan, {switch_latency});
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

Table points_of(const std::vector<PointFigures>& figures) {
  const auto of_ranks = [](auto figure) {
    return [=](const PointFigures& p) {
      boost::json::array values;
      for (const checker::ClockChanges& rank : p.per_rank) values.push_back(*cell_of(std::invoke(figure, rank)));
      return values;
    };
  };
  return table_of<PointFigures>(figures,
                                {{"point", &PointFigures::point},
                                 {"time_s", &PointFigures::time},
                                 {"energy_j", &PointFigures::energy},
                                 {"effective_energy_j", &PointFigures::effective_energy},
                                 {"bound_j", &PointFigures::bound},
                                 {"gap_pct", &PointFigures::gap_pct},
                                 {"average_power_w", &PointFigures::average_power},
                                 {"saving_pct", &PointFigures::saving_pct},
                                 {"slowdown_pct", &PointFigures::slowdown_pct},
                                 {"clock_limit_cost_j", &PointFigures::clock_limit_cost},
                                 {"clock_changes", &PointFigures::clock_changes},
                                 {"shortest_dwell_s", &PointFigures::shortest_dwell},
                                 {"time_stddev_s", [](const PointFigures& p) { return p.error_bars.time_stddev; }},
                                 {"energy_stddev_j", [](const PointFigures& p) { return p.error_bars.energy_stddev; }},
                                 {"lateness_s", &PointFigures::lateness},
                                 {"rank_clock_changes:.6g", of_ranks(&checker::ClockChanges::count)},
                                 {"rank_shortest_dwell_s:.6g", of_ranks(&checker::ClockChanges::shortest_dwell)}});
}

}  // namespace perseus::cli
