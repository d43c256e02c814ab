#include "planning/baselines/best_of_all.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "planning/baselines/methods.h"
#include "planning/planner/perseus_method.h"

namespace perseus::baselines {

Result<model::Frontier> plan_best_of_all(const model::ComputationDag& dag, planner::PlannerOptions options,
                                         std::optional<Seconds> published_unit_time, StopCheck& check) {
  for (const BaselineMethod& method : baseline_methods()) {
    Result<BaselinePlans> found = method.plans_unless_stopped(dag, check);
    if (check.stopped()) return planning_stopped();
    if (found) std::ranges::move(found->plans, std::back_inserter(options.candidates));
  }
  if (published_unit_time) {
    const Result<planner::PerseusRun> run = planner::plan_perseus(dag, {*published_unit_time, {}}, check);
    if (!run) return run.error();
    model::Frontier published = run->frontier();
    for (model::FrontierPoint& point : published.points) options.candidates.push_back(std::move(point.plan));
  }
  return planner::plan_exact(dag, options, check);
}

}  // namespace perseus::baselines
