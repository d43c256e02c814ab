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
  std::vector<Realised> all;
  model::Plan plan(dag.computations.size(), 0);
  bool has_more = true;
  while (has_more) {
    all.push_back(realise(dag, plan));
    has_more = false;
    for (std::size_t i = 0; i < plan.size() && !has_more; ++i) {  // counts up, one digit per computation
      has_more = ++plan[i] < dag.type_of(static_cast<int>(i)).options.size();
      if (!has_more) plan[i] = 0;
    }
  }
  std::ranges::sort(all, [](const Realised& a, const Realised& b) {
    return a.time != b.time ? a.time < b.time : a.effective_energy < b.effective_energy;
  });
  for (const Realised& realised : all)
    if (pareto_set_.empty() || realised.effective_energy < pareto_set_.back().effective_energy)
      pareto_set_.push_back(realised);
}

Joules BruteForce::best_at(Seconds deadline) const {
  const auto slower = std::ranges::upper_bound(pareto_set_, deadline, {}, &Realised::time);
  PERSEUS_CHECK(slower != pareto_set_.begin(), "no plan is that fast");
  return (slower - 1)->effective_energy;
}

}  // namespace perseus::testing
