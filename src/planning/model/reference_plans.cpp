#include "planning/model/reference_plans.h"

#include <algorithm>
#include <utility>

namespace perseus::model {

Plan all_maximum_clock(const ComputationDag& dag) { return Plan(dag.computations.size(), 0); }

Plan minimum_energy_plan(const ComputationDag& dag) {
  Plan plan(dag.computations.size());
  for (int i = 0; i < static_cast<int>(plan.size()); ++i) {
    const auto cost = [power = dag.blocking_power_of(i)](const Measurement& option) {
      return std::pair(option.energy - power * option.time, option.time);
    };
    const std::vector<Measurement>& options = dag.type_of(i).options;
    plan[i] = static_cast<Plan::value_type>(std::ranges::min_element(options, {}, cost) - options.begin());
  }
  return plan;
}

}  // namespace perseus::model
