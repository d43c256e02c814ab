#include "io/report/summary.h"

#include <algorithm>

#include "io/report/timeline.h"

namespace perseus::report {
namespace {

IterationCost cost_of(const model::ComputationDag& dag, const model::Plan& plan) {
  const Timeline timeline = timeline_of(dag, plan);
  return {timeline.makespan, timeline.energy, timeline.effective_energy};
}

double saving_pct(Joules before, Joules after) { return before == after ? 0 : 100.0 * ((before - after) / before); }

/// Mean and largest gap over T. Between two neighboring points the faster one applies and the bound falls, so the gap
/// grows up to the next point. Simpson's rule per interval.
void measure_gap(const model::ComputationDag& dag, const model::Frontier& frontier, ReportSummary& summary) {
  const Watts waiting = dag.total_blocking_power();
  const auto gap_pct = [&](const model::FrontierPoint& point, Seconds deadline) {
    const Joules bound = frontier.bound.at(deadline);
    if (point.effective_energy == bound) return 0.0;  // also where everything is 0 J
    return 100.0 * ((point.effective_energy - bound) / (bound + waiting * deadline));
  };
  const std::vector<model::FrontierPoint>& points = frontier.points;
  summary.gap_max_pct = gap_pct(points.front(), points.front().time);
  double area = 0;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Seconds from = points[i].time;
    const Seconds to = points[i - 1].time;
    const double first = gap_pct(points[i], from);
    const double last = gap_pct(points[i], to);
    area += (to - from).value() * (first + 4 * gap_pct(points[i], 0.5 * (from + to)) + last) / 6;
    summary.gap_max_pct = std::max({summary.gap_max_pct, first, last});
  }
  const double width = (points.front().time - points.back().time).value();
  summary.gap_mean_pct = width > 0 ? area / width : summary.gap_max_pct;
}

StragglerChoice choose(const model::ComputationDag& dag, const model::Frontier& frontier, const IterationCost& all_max,
                       Seconds deadline) {
  const Watts waiting = dag.total_blocking_power();
  const auto energy_at = [&](Joules effective, Seconds own) { return effective + waiting * std::max(own, deadline); };
  StragglerChoice choice;
  choice.deadline = deadline;
  choice.point = point_for(frontier, deadline);
  const model::FrontierPoint& point = frontier.points[choice.point];
  choice.energy = energy_at(point.effective_energy, point.time);
  choice.all_max_energy = energy_at(all_max.effective_energy, all_max.time);
  choice.saving_pct = saving_pct(choice.all_max_energy, choice.energy);
  return choice;
}

}  // namespace

Seconds t_max_of(const model::ComputationDag& dag, const model::Frontier& frontier) {
  return timeline_of(dag, model::all_maximum_clock(dag)).makespan + frontier.maximum_clock_noise.lateness;
}

int point_for(const model::Frontier& frontier, Seconds deadline) {
  const auto& points = frontier.points;
  const auto found =
      std::ranges::partition_point(points, [&](const model::FrontierPoint& p) { return p.time > deadline; });
  return static_cast<int>(found - points.begin()) - (found == points.end() ? 1 : 0);
}

ReportSummary summarize(const model::ComputationDag& dag, const model::Frontier& frontier,
                        std::optional<Seconds> straggler, const model::DefaultRule& rule) {
  PERSEUS_CHECK(!frontier.points.empty(), "a frontier has at least one point");
  const model::FrontierPoint& fastest = frontier.points.back();
  ReportSummary summary;
  summary.fastest = {fastest.time, fastest.energy, fastest.effective_energy};
  summary.all_max = cost_of(dag, model::all_maximum_clock(dag));
  summary.all_max.time += frontier.maximum_clock_noise.lateness;
  summary.all_max.energy += dag.total_blocking_power() * frontier.maximum_clock_noise.lateness;
  summary.min_energy = cost_of(dag, model::minimum_energy_plan(dag));
  summary.t_min = frontier.bound.t_min();
  summary.t_star = frontier.bound.t_star();
  summary.rule = rule;
  summary.default_point = model::default_point(frontier, summary.all_max.time, rule);
  const model::FrontierPoint& chosen = frontier.points[summary.default_point];
  summary.default_plan = {chosen.time, chosen.energy, chosen.effective_energy};
  summary.saving_pct = saving_pct(summary.all_max.energy, chosen.energy);
  summary.fastest_saving_pct = saving_pct(summary.all_max.energy, fastest.energy);
  for (const model::ToleranceGain& gain : model::usual_tolerances(frontier, summary.all_max.time, rule)) {
    const double saved_pct = saving_pct(summary.all_max.energy, frontier.points[gain.point].energy);
    if (saved_pct <= summary.saving_pct) continue;
    summary.tolerances.push_back({100 * gain.slowdown, gain.point, saved_pct, saved_pct - summary.saving_pct});
  }
  measure_gap(dag, frontier, summary);
  if (straggler) summary.straggler = choose(dag, frontier, summary.all_max, *straggler);
  return summary;
}

}  // namespace perseus::report
