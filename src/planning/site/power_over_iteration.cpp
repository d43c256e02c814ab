#include "planning/site/power_over_iteration.h"

#include <algorithm>
#include <utility>

namespace perseus::site {

PowerOverIteration::PowerOverIteration(const model::ComputationDag& dag)
    : dag_(dag), before_(model::neighbors_before_s(dag)) {}

PowerOverIteration::Run PowerOverIteration::of(const model::Plan& plan) const {
  const auto option_of = [&](int i) -> const model::Measurement& { return dag_.type_of(i).options[plan[i]]; };
  std::vector<double> end_s;
  Run run;
  run.makespan = Seconds(model::longest_path(
      before_, [&](int i) { return option_of(i).time.value(); }, end_s));
  std::vector<std::pair<double, Watts>> changes;
  changes.reserve(2 * end_s.size());
  for (int i = 0; i < std::ssize(end_s); ++i) {
    const model::Measurement& option = option_of(i);
    if (option.time <= Seconds(0)) continue;
    const Watts above = option.energy / option.time - dag_.blocking_power_of(i);
    changes.emplace_back(end_s[i] - option.time.value(), above);
    changes.emplace_back(end_s[i], Watts(0) - above);
  }
  std::ranges::sort(changes, {}, &std::pair<double, Watts>::first);
  run.steps.push_back({Seconds(0), dag_.total_blocking_power()});
  for (const auto& [at_s, by] : changes) {
    if (at_s > run.steps.back().from.value()) run.steps.push_back({Seconds(at_s), run.steps.back().power});
    run.steps.back().power += by;
  }
  return run;
}

}  // namespace perseus::site
