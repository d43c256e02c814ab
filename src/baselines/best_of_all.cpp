#include "baselines/best_of_all.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "baselines/methods.h"
#include "planner/perseus_method.h"

namespace perseus {

Result<Frontier> plan_best_of_all(const ComputationDag& dag, PlannerOptions options, const OtherMethods& others) {
  StopCheck never;
  return plan_best_of_all(dag, std::move(options), others, never);
}

Result<Frontier> plan_best_of_all(const ComputationDag& dag, PlannerOptions options, const OtherMethods& others,
                                  StopCheck& check) {
  for (const BaselineMethod& method : baseline_methods()) {
    Result<BaselinePlans> found = method.plans_unless_stopped(dag, check);
    if (check.stopped()) return planning_stopped();
    if (found) std::ranges::move(found->plans, std::back_inserter(options.candidates));
  }
  if (others.published_unit_time) {
    const Result<PerseusRun> run = plan_perseus(dag, {*others.published_unit_time, {}});
    if (!run) return run.error();
    Frontier published = run->frontier();
    for (FrontierPoint& point : published.points) options.candidates.push_back(std::move(point.plan));
  }
  return plan_exact(dag, options, check);
}

}  // namespace perseus
