#include "oracles/brute_force.h"

#include <algorithm>

#include "base/result.h"

namespace perseus::testing {

double num_plans(const model::ComputationDag& dag) {
  double plans = 1;
  for (const model::Computation& computation : dag.computations)
    plans *= static_cast<double>(dag.types[computation.type].options.size());
  return plans;
}

BruteForce::BruteForce(const model::ComputationDag& dag, double max_plans) {
  PERSEUS_CHECK(num_plans(dag) <= max_plans, "too many plans for brute force");
  std::vector<Realized> all;
  model::Plan plan(dag.computations.size(), 0);
  bool has_more = true;
  while (has_more) {
    all.push_back(realize(dag, plan));
    has_more = false;
    for (std::size_t i = 0; i < plan.size() && !has_more; ++i) {  // counts up, one digit per computation
      has_more = ++plan[i] < dag.type_of(static_cast<int>(i)).options.size();
      if (!has_more) plan[i] = 0;
    }
  }
  std::ranges::sort(all, [](const Realized& a, const Realized& b) {
    return a.time != b.time ? a.time < b.time : a.effective_energy < b.effective_energy;
  });
  for (const Realized& realized : all)
    if (pareto_set_.empty() || realized.effective_energy < pareto_set_.back().effective_energy)
      pareto_set_.push_back(realized);
}

Joules BruteForce::best_at(Seconds deadline) const {
  const auto slower = std::ranges::upper_bound(pareto_set_, deadline, {}, &Realized::time);
  PERSEUS_CHECK(slower != pareto_set_.begin(), "no plan is that fast");
  return (slower - 1)->effective_energy;
}

}  // namespace perseus::testing
