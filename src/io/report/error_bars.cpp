#include "io/report/error_bars.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace perseus::report {
namespace {

/// Effect of one measured number on an iteration.
struct Uses {
  int count = 0;
  int critical = 0;
  Watts blocking;  ///< of all computations that use the number, together
};

}  // namespace

bool has_spread(const model::ComputationDag& dag) {
  return std::ranges::any_of(dag.types, [](const model::ComputationType& type) {
    return std::ranges::any_of(type.options, [](const model::Measurement& m) {
      return m.time_stddev > Seconds(0) || m.energy_stddev > Joules(0);
    });
  });
}

ErrorBars error_bars_of(const model::ComputationDag& dag, const model::Plan& plan, const Timeline& timeline) {
  std::map<std::pair<int, int>, Uses> uses;  // by type and option
  const auto uses_of = [&](int i) -> Uses& { return uses[{dag.computations[i].type, plan[i]}]; };
  for (int i = 0; i < static_cast<int>(plan.size()); ++i) {
    ++uses_of(i).count;
    uses_of(i).blocking += dag.blocking_power_of(i);
  }
  for (const int i : timeline.critical_path) ++uses_of(i).critical;

  double time_variance = 0;
  double energy_variance = 0;
  for (const auto& [key, use] : uses) {
    const model::Measurement& m = dag.types[key.first].options[key.second];
    const Seconds longer = use.critical * m.time_stddev;
    const Joules waited = dag.total_blocking_power() * longer - use.blocking * m.time_stddev;
    const Joules computed = use.count * m.energy_stddev;
    time_variance += longer.value() * longer.value();
    energy_variance += waited.value() * waited.value() + computed.value() * computed.value();
  }
  return {Seconds(std::sqrt(time_variance)), Joules(std::sqrt(energy_variance))};
}

}  // namespace perseus::report
