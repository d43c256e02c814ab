#include "search/union_frontier.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace perseus::search {
namespace {

/// Times of one plan that were summed in another order differ in their last digits.
constexpr double kSameTime = 1 + 1e-12, kLastDigits = 1 + 1e-10;

Joules least_bound(const std::vector<const Frontier*>& frontiers, Seconds deadline) {
  Joules least(std::numeric_limits<double>::infinity());
  for (const Frontier* frontier : frontiers) {
    if (frontier->bound.t_min() <= kSameTime * deadline) least = std::min(least, frontier->bound.at(deadline));
  }
  return least;
}

}  // namespace

UnionFrontier union_of(const std::vector<const Frontier*>& frontiers, Watts total_blocking_power) {
  std::vector<Origin> all;
  for (int c = 0; c < static_cast<int>(frontiers.size()); ++c) {
    for (int p = 0; p < static_cast<int>(frontiers[c]->points.size()); ++p) all.push_back({c, p});
  }
  const auto at = [&](const Origin& o) -> const FrontierPoint& { return frontiers[o.configuration]->points[o.point]; };
  std::ranges::stable_sort(all, [&](const Origin& a, const Origin& b) {
    return std::tuple(at(a).time, at(a).effective_energy) < std::tuple(at(b).time, at(b).effective_energy);
  });
  UnionFrontier result;
  for (const Origin& origin : all) {
    const FrontierPoint& point = at(origin);
    if (!result.origins.empty() && point.effective_energy >= at(result.origins.back()).effective_energy) continue;
    result.origins.push_back(origin);
  }
  std::ranges::reverse(result.origins);
  for (const Origin& origin : result.origins) {
    FrontierPoint point;
    point.time = at(origin).time;
    point.effective_energy = at(origin).effective_energy;
    point.energy = at(origin).energy;
    point.bound = least_bound(frontiers, point.time) + total_blocking_power * point.time;
    if (point.bound > point.energy && point.bound < point.energy * kLastDigits) point.bound = point.energy;
    result.frontier.points.push_back(std::move(point));
  }
  return result;
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
