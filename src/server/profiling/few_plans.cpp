#include "server/profiling/few_plans.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "planning/planner/choices.h"
#include "planning/planner/realize.h"
#include "planning/planner/relaxation.h"
#include "planning/planner/rounding.h"

namespace perseus::profiling {

model::Frontier few_plans(const model::ComputationDag& dag, std::vector<Seconds> deadlines, StopCheck& check) {
  const planner::Kinds kinds = planner::make_kinds(dag);
  planner::Relaxation relaxation(dag, kinds);
  planner::Rounding rounding(dag, kinds, relaxation);
  planner::Realizer realizer(dag);
  std::ranges::sort(deadlines, std::greater{});
  deadlines.emplace_back(0);  // the sweep always goes from T* to T_min
  model::Frontier frontier;
  for (const Seconds deadline : deadlines) {
    relaxation.lower_deadline(deadline, check);
    if (check.stopped()) break;
    model::FrontierPoint point;
    point.plan = kinds.plan_of(rounding.round(planner::Rounding::kPunctual));
    const planner::Realizer::Outcome outcome = realizer.realize(point.plan);
    point.time = outcome.time;
    point.effective_energy = outcome.effective_energy;
    frontier.points.push_back(std::move(point));
  }
  planner::keep_pareto(frontier.points);
  frontier.bound = relaxation.curve();
  return frontier;
}

}  // namespace perseus::profiling
