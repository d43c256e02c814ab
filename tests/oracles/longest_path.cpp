#include "oracles/longest_path.h"

#include <algorithm>

namespace perseus::testing {

Realized realize(const model::ComputationDag& dag, const model::Plan& plan) {
  // Dependencies in any order: a computation's end is final only once all those before it were looked at.
  std::vector<std::vector<const model::Dependency*>> into(dag.computations.size());
  for (const model::Dependency& dependency : dag.dependencies) into[dependency.after].push_back(&dependency);
  std::vector<Seconds> end(dag.computations.size());
  Realized realized;
  for (std::size_t i = 0; i < end.size(); ++i) {
    const model::Measurement& option = dag.type_of(static_cast<int>(i)).options[plan[i]];
    Seconds start;
    for (const model::Dependency* dependency : into[i])
      start = std::max(start, end[dependency->before] + dependency->latency);
    end[i] = start + option.time;
    realized.time = std::max(realized.time, end[i]);
    realized.effective_energy += option.energy - dag.blocking_power_of(static_cast<int>(i)) * option.time;
  }
  return realized;
}

}  // namespace perseus::testing
