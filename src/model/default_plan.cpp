#include "model/default_plan.h"

#include <algorithm>

namespace perseus {
namespace {

/// Sums of the same times in another order differ in their last digits.
constexpr double kSameTime = 1 + 1e-9;
constexpr double kUsualTolerances[] = {0.001, 0.003, 0.01, 0.03};

}  // namespace

Seconds time_without_straggler(const Frontier& frontier, Seconds t_max, const DefaultRule& rule) {
  const Seconds t_min = frontier.points.back().time;
  return rule.fastest ? t_min : std::max(t_min, t_max);
}

int default_point(const Frontier& frontier, Seconds t_max, const DefaultRule& rule) {
  const Seconds deadline = kSameTime * (1 + rule.slowdown) * time_without_straggler(frontier, t_max, rule);
  const auto found =
      std::ranges::partition_point(frontier.points, [&](const FrontierPoint& p) { return p.time > deadline; });
  return static_cast<int>(found - frontier.points.begin());
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

}  // namespace perseus
