#include "profiling/few_plans.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "planner/choices.h"
#include "planner/realise.h"
#include "planner/relaxation.h"
#include "planner/rounding.h"

namespace perseus::profiling {

Seconds least_time(const ComputationDag& dag) {
  Plan plan;
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    const std::vector<Measurement>& options = dag.type_of(i).options;
    const auto fastest = std::ranges::min_element(options, {}, &Measurement::time);
    plan.push_back(static_cast<std::uint16_t>(fastest - options.begin()));
  }
  return Realiser(dag).realise(plan).time;
}

Frontier few_plans(const ComputationDag& dag, std::vector<Seconds> deadlines, StopCheck& check) {
  const Kinds kinds = make_kinds(dag);
  Relaxation relaxation(dag, kinds);
  Rounding rounding(dag, kinds, relaxation);
  Realiser realiser(dag);
  std::ranges::sort(deadlines, std::greater{});
  deadlines.emplace_back(0);  // the sweep goes from T* to T_min, whatever is asked of it
  Frontier frontier;
  for (const Seconds deadline : deadlines) {
    relaxation.lower_deadline(deadline, check);
    if (check.stopped()) break;
    FrontierPoint point;
    point.plan = kinds.plan_of(rounding.round(Rounding::punctual));
    const Realiser::Outcome outcome = realiser.realise(point.plan);
    point.time = outcome.time;
    point.effective_energy = outcome.effective_energy;
    frontier.points.push_back(std::move(point));
  }
  keep_pareto(frontier.points);
  return frontier;
}

}  // namespace perseus::profiling
