#include "planning/model/frontier.h"

#include <algorithm>

namespace perseus::model {

Joules LowerBound::at(Seconds deadline) const {
  if (deadline <= t_min()) return vertices.front().effective_energy;
  if (deadline >= t_star()) return vertices.back().effective_energy;
  const auto right = std::ranges::upper_bound(vertices, deadline, {}, &BoundVertex::time);
  const auto left = right - 1;
  const double part = (deadline - left->time) / (right->time - left->time);
  return left->effective_energy + part * (right->effective_energy - left->effective_energy);
}

}  // namespace perseus::model
