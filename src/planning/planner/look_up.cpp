#include "planning/planner/look_up.h"

#include <algorithm>
#include <functional>

namespace perseus::planner {

std::size_t look_up_index(const model::Frontier& frontier, Seconds straggler_time) {
  // Points are in descending order of time: take the first that is fast enough.
  const auto found =
      std::ranges::lower_bound(frontier.points, straggler_time, std::greater{}, &model::FrontierPoint::time);
  if (found == frontier.points.end()) return frontier.points.size() - 1;
  return static_cast<std::size_t>(found - frontier.points.begin());
}

}  // namespace perseus::planner
