#include "planning/planner/realize.h"

#include <algorithm>
#include <map>
#include <utility>

namespace perseus::planner {

Realizer::Realizer(const model::ComputationDag& dag) : before_(model::neighbors_before_s(dag)) {
  std::map<std::pair<int, Watts>, int> known;
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    const Watts waiting = dag.blocking_power_of(i);
    const auto [kind, is_new] =
        known.try_emplace({dag.computations[i].type, waiting}, static_cast<int>(options_.size()));
    first_option_.push_back(kind->second);
    if (!is_new) continue;
    for (const model::Measurement& m : dag.type_of(i).options) {
      options_.push_back({m.time.value(), (m.energy - waiting * m.time).value()});
    }
  }
}

Realizer::Outcome Realizer::realize(const model::Plan& plan) {
  double effective_j = 0;
  const auto run = [&](int i) {
    const Option& own = option(i, plan[i]);
    effective_j += own.effective_j;
    return own.time_s;
  };
  const double makespan_s = model::longest_path(before_, run, end_s_);
  return {Seconds(makespan_s), Joules(effective_j)};
}

void Realizer::makespans(const std::vector<const double*>& time_s, std::size_t lanes, double* makespan_s) {
  ends_s_.resize(time_s.size() * lanes);
  std::fill_n(makespan_s, lanes, 0.0);
  for (std::size_t i = 0; i < time_s.size(); ++i) {
    double* end_s = ends_s_.data() + i * lanes;
    std::fill_n(end_s, lanes, 0.0);
    for (const model::Neighbor<double>& before : before_.of(static_cast<int>(i))) {
      const double* before_s = ends_s_.data() + before.computation * lanes;
      for (std::size_t l = 0; l < lanes; ++l) end_s[l] = std::max(end_s[l], before_s[l] + before.latency);
    }
    for (std::size_t l = 0; l < lanes; ++l) {
      end_s[l] += time_s[i][l];
      makespan_s[l] = std::max(makespan_s[l], end_s[l]);
    }
  }
}

void keep_pareto(std::vector<model::FrontierPoint>& points) {
  // Fastest first, the cheapest of equally fast points first; then drop each point that saves nothing over a faster
  // one.
  std::ranges::stable_sort(points, [](const model::FrontierPoint& a, const model::FrontierPoint& b) {
    return a.time != b.time ? a.time < b.time : a.effective_energy < b.effective_energy;
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (kept > 0 && points[i].effective_energy >= points[kept - 1].effective_energy) continue;
    if (i != kept) points[kept] = std::move(points[i]);
    ++kept;
  }
  points.resize(kept);
  std::ranges::reverse(points);
}

}  // namespace perseus::planner
