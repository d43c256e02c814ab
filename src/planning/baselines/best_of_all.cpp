#include "planning/baselines/best_of_all.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "planning/baselines/methods.h"
#include "planning/planner/perseus_method.h"

namespace perseus::baselines {
namespace {

constexpr double kQuickSteps = 4e7;  // steps times computations

bool published_enters(const model::ComputationDag& dag, const planner::PlannerOptions& options,
                      const OtherMethods& others) {
  if (others.published != PublishedMethod::where_quick) return others.published == PublishedMethod::always;
  const bool limited = options.switch_latency > Seconds(0) || options.min_dwell > Seconds(0);
  const double steps = planner::estimated_perseus_steps(dag, others.published_unit_time);
  return !limited && steps * static_cast<double>(dag.computations.size()) <= kQuickSteps;
}

}  // namespace

Result<model::Frontier> plan_best_of_all(const model::ComputationDag& dag, planner::PlannerOptions options,
                                         const OtherMethods& others) {
  StopCheck never;
  return plan_best_of_all(dag, std::move(options), others, never);
}

Result<model::Frontier> plan_best_of_all(const model::ComputationDag& dag, planner::PlannerOptions options,
                                         const OtherMethods& others, StopCheck& check) {
  for (const BaselineMethod& method : baseline_methods()) {
    Result<BaselinePlans> found = method.plans_unless_stopped(dag, check);
    if (check.stopped()) return planning_stopped();
    if (found) std::ranges::move(found->plans, std::back_inserter(options.candidates));
  }
  if (published_enters(dag, options, others)) {
    const Result<planner::PerseusRun> run = planner::plan_perseus(dag, {others.published_unit_time, {}}, check);
    if (!run && (check.stopped() || others.published == PublishedMethod::always)) return run.error();
    model::Frontier published = run ? run->frontier() : model::Frontier{};
    for (model::FrontierPoint& point : published.points) options.candidates.push_back(std::move(point.plan));
  }
  return planner::plan_exact(dag, options, check);
}

}  // namespace perseus::baselines
