#include "planning/planner/realize.h"

#include <algorithm>

namespace perseus::planner {

Realizer::Realizer(const model::ComputationDag& dag) : dag_(dag) {
  const std::size_t n = dag.computations.size();
  first_.assign(n + 1, 0);
  for (const model::Dependency& d : dag.dependencies) ++first_[d.after + 1];
  for (std::size_t i = 0; i < n; ++i) first_[i + 1] += first_[i];
  edges_.resize(dag.dependencies.size());
  std::vector<int> fill = first_;
  for (const model::Dependency& d : dag.dependencies) edges_[fill[d.after]++] = {d.before, d.latency.value()};
  end_s_.resize(n);
}

Realizer::Outcome Realizer::realize(const model::Plan& plan) {
  double makespan_s = 0, effective_j = 0;
  for (int i = 0; i < static_cast<int>(plan.size()); ++i) {
    double start_s = 0;
    for (int k = first_[i]; k < first_[i + 1]; ++k) {
      start_s = std::max(start_s, end_s_[edges_[k].before] + edges_[k].latency_s);
    }
    const model::Measurement& option = dag_.type_of(i).options[plan[i]];
    end_s_[i] = start_s + option.time.value();
    makespan_s = std::max(makespan_s, end_s_[i]);
    effective_j += (option.energy - dag_.blocking_power_of(i) * option.time).value();
  }
  return {Seconds(makespan_s), Joules(effective_j)};
}

void Realizer::makespans(const std::vector<const double*>& time_s, std::size_t lanes, double* makespan_s) {
  ends_s_.resize(time_s.size() * lanes);
  std::fill_n(makespan_s, lanes, 0.0);
  for (std::size_t i = 0; i < time_s.size(); ++i) {
    double* end_s = ends_s_.data() + i * lanes;
    std::fill_n(end_s, lanes, 0.0);
    for (int k = first_[i]; k < first_[i + 1]; ++k) {
      const double* before_s = ends_s_.data() + edges_[k].before * lanes;
      for (std::size_t l = 0; l < lanes; ++l) end_s[l] = std::max(end_s[l], before_s[l] + edges_[k].latency_s);
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
