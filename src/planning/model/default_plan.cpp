#include "planning/model/default_plan.h"

#include <algorithm>

namespace perseus::model {
namespace {

Watts waiting_power(const Frontier& frontier) {
  const FrontierPoint& any = frontier.points.front();
  return any.time > Seconds(0) ? (any.energy - any.effective_energy) / any.time : Watts(0);
}

/// From this iteration time on, pipelines may run a slower point, which changes their effective energy.
struct PointStep {
  Seconds time;
  Joules change;
};

}  // namespace

int slowest_within(const Frontier& frontier, Seconds time) {
  const auto& points = frontier.points;
  const auto found =
      std::ranges::partition_point(points, [&](const FrontierPoint& p) { return p.time > kSameTime * time; });
  return static_cast<int>(found - points.begin()) - (found == points.end() ? 1 : 0);
}

Seconds least_energy_time(std::span<const Followers> followers, Watts others, Seconds at_least, Seconds at_most) {
  Seconds slowest_useful;
  for (const auto& [frontier, copies] : followers) {
    at_least = std::max(at_least, frontier->points.back().time);
    slowest_useful = std::max(slowest_useful, frontier->points.front().time);
  }
  at_most = std::max(at_least, std::min(at_most, slowest_useful));

  Watts waiting = others;
  Joules effective;
  std::vector<PointStep> steps;
  for (const auto& [frontier, copies] : followers) {
    const auto& points = frontier->points;
    const int fastest = slowest_within(*frontier, at_least), slowest = slowest_within(*frontier, at_most);
    waiting += copies * waiting_power(*frontier);
    effective += copies * points[fastest].effective_energy;
    for (int p = fastest - 1; p >= slowest; --p) {
      steps.push_back({points[p].time, copies * (points[p].effective_energy - points[p + 1].effective_energy)});
    }
  }
  std::ranges::stable_sort(steps, {}, &PointStep::time);

  Seconds best = at_least;
  Joules least = effective + waiting * at_least;
  for (const auto& [time, change] : steps) {
    effective += change;
    const Joules energy = effective + waiting * time;
    if (energy < least) least = energy, best = time;
  }
  // Up to the allowed time itself no pipeline runs a slower point.
  return !steps.empty() && best == steps.back().time ? at_most : best;
}

Seconds allowed_time(const Frontier& frontier, Seconds t_max, const DefaultRule& rule) {
  const Seconds t_min = frontier.points.back().time;
  return rule.fastest ? t_min : std::max(t_min, t_max);
}

Seconds planned_time(const Frontier& frontier, Seconds t_max, const DefaultRule& rule, Seconds straggler) {
  const Followers one{&frontier, 1};
  return least_energy_time({&one, 1}, {}, straggler, (1 + rule.slowdown) * allowed_time(frontier, t_max, rule));
}

Seconds time_without_straggler(const Frontier& frontier, Seconds t_max, const DefaultRule& rule) {
  return planned_time(frontier, t_max, {0, rule.fastest});
}

int default_point(const Frontier& frontier, Seconds t_max, const DefaultRule& rule) {
  return slowest_within(frontier, planned_time(frontier, t_max, rule));
}

std::vector<ToleranceGain> usual_tolerances(const Frontier& frontier, Seconds t_max, const DefaultRule& rule) {
  std::vector<ToleranceGain> gains;
  int last = default_point(frontier, t_max, rule);
  for (const double slowdown : kUsualTolerances) {
    if (slowdown <= rule.slowdown) continue;
    const int point = default_point(frontier, t_max, {slowdown, rule.fastest});
    if (point != last) gains.push_back({slowdown, point});
    last = point;
  }
  return gains;
}

}  // namespace perseus::model
