#include "planning/search/union_frontier.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "planning/model/default_plan.h"

namespace perseus::search {
namespace {

/// Relative tolerance of times: sums of one plan's times in another order differ in their last digits.
constexpr double kSameTime = 1 + 1e-12, kLastDigits = 1 + 1e-10;
/// A slower point that saves less than this is another sum of the same energies.
constexpr double kSameEnergy = 1e-13;

Joules least_bound(const std::vector<const model::Frontier*>& frontiers, Seconds deadline) {
  Joules least(std::numeric_limits<double>::infinity());
  for (const model::Frontier* frontier : frontiers) {
    if (frontier->bound.t_min() <= kSameTime * deadline) least = std::min(least, frontier->bound.at(deadline));
  }
  return least;
}

}  // namespace

UnionFrontier union_of(const std::vector<const model::Frontier*>& frontiers, Watts total_blocking_power) {
  std::vector<Origin> all;
  for (int c = 0; c < static_cast<int>(frontiers.size()); ++c) {
    for (int p = 0; p < static_cast<int>(frontiers[c]->points.size()); ++p) all.push_back({c, p});
  }
  const auto at = [&](const Origin& o) -> const model::FrontierPoint& {
    return frontiers[o.configuration]->points[o.point];
  };
  std::ranges::stable_sort(all, [&](const Origin& a, const Origin& b) {
    return std::tuple(at(a).time, at(a).effective_energy) < std::tuple(at(b).time, at(b).effective_energy);
  });
  UnionFrontier result;
  for (const Origin& origin : all) {
    const model::FrontierPoint& point = at(origin);
    if (!result.origins.empty()) {
      const model::FrontierPoint& faster = at(result.origins.back());
      if (point.effective_energy >= faster.effective_energy - kSameEnergy * faster.energy) continue;
    }
    result.origins.push_back(origin);
  }
  std::ranges::reverse(result.origins);
  for (const Origin& origin : result.origins) {
    model::FrontierPoint point;
    point.time = at(origin).time;
    point.effective_energy = at(origin).effective_energy;
    point.energy = at(origin).energy;
    point.bound = least_bound(frontiers, point.time) + total_blocking_power * point.time;
    if (point.bound > point.energy && point.bound < point.energy * kLastDigits) point.bound = point.energy;
    result.frontier.points.push_back(std::move(point));
  }
  return result;
}

std::optional<int> cheapest_in_time(const model::Frontier& frontier, Seconds deadline) {
  std::optional<int> cheapest;
  for (int i = 0; i < static_cast<int>(frontier.points.size()); ++i) {
    const model::FrontierPoint& point = frontier.points[i];
    if (point.time > model::kSameTime * deadline) continue;
    if (!cheapest || point.energy < frontier.points[*cheapest].energy) cheapest = i;
  }
  return cheapest;
}

Joules least_energy_in_time(const std::vector<const model::Frontier*>& frontiers, Watts total_blocking_power,
                            Seconds deadline) {
  // The bound is convex and piecewise linear, also with the cost of waiting: it is least at a vertex or at the end.
  Joules least(std::numeric_limits<double>::infinity());
  for (const model::Frontier* frontier : frontiers) {
    if (frontier->bound.t_min() > model::kSameTime * deadline) continue;
    const auto consider = [&](Seconds time) {
      least = std::min(least, frontier->bound.at(time) + total_blocking_power * time);
    };
    consider(deadline);
    for (const model::BoundVertex& vertex : frontier->bound.vertices) {
      if (vertex.time < deadline) consider(vertex.time);
    }
  }
  return least;
}

std::vector<WinningSpan> winning_spans(const UnionFrontier& all) {
  std::vector<WinningSpan> spans;
  for (std::size_t i = all.origins.size(); i-- > 0;) {
    const int configuration = all.origins[i].configuration;
    if (spans.empty() || spans.back().configuration != configuration) {
      spans.push_back({all.frontier.points[i].time, configuration});
    }
  }
  return spans;
}

}  // namespace perseus::search
