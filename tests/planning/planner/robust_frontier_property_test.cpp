// Frontiers whose plans keep their times with other latencies, by the checker's simulation.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "oracles/dice.h"
#include "oracles/instances.h"
#include "planning/checker/plan_run.h"
#include "planning/checker/verify_plan.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/exact.h"
#include "planning/planner/robust_frontier.h"

namespace perseus::planner {
namespace {

using testing::Dice;
using testing::ShrinkingDice;

LatencySets random_sets(Dice& dice, const model::ComputationDag& dag) {
  LatencySets sets(dice.roll(1, 4));
  for (auto& set : sets) {
    for (const model::Dependency& d : dag.dependencies)
      set.push_back(dice.one_in(3) ? d.latency + Seconds(dice.real(0, 2)) : d.latency);
  }
  return sets;
}

/// By how much a plan exceeds maximum clock's time.
Seconds excess(const model::ComputationDag& dag, const model::Plan& plan) {
  return checker::run_plan(dag, plan).makespan - checker::run_plan(dag, model::all_maximum_clock(dag)).makespan;
}

/// Its largest value with the sets, less that with the DAG's own latencies, relative to maximum clock's time.
double simulated_lateness(const model::ComputationDag& dag, const LatencySets& sets, const model::Plan& plan) {
  Seconds most;
  for (const auto& set : sets) {
    model::ComputationDag other = dag;
    for (std::size_t d = 0; d < set.size(); ++d) other.dependencies[d].latency = set[d];
    most = std::max(most, excess(other, plan) - excess(dag, plan));
  }
  return most / checker::run_plan(dag, model::all_maximum_clock(dag)).makespan;
}

RC_GTEST_PROP(RobustFrontier, KeepsItsTimesWithAllLatencies, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const LatencySets sets = random_sets(dice, dag);
  PlannerOptions options;
  options.deadlines = 10;
  const model::Frontier frontier = plan_exact(dag, options);
  for (const model::FrontierPoint& point : frontier.points)
    RC_ASSERT(std::abs(lateness_with(dag, sets, point.plan) - simulated_lateness(dag, sets, point.plan)) < 1e-9);

  const model::Frontier robust = robust_frontier(dag, sets, frontier, std::array{0.01});
  const Seconds t_max = checker::run_plan(dag, model::all_maximum_clock(dag)).makespan;
  RC_ASSERT(robust.points.back().time <= (1 + 1e-9) * t_max);
  for (const model::FrontierPoint& point : robust.points)
    RC_ASSERT(simulated_lateness(dag, sets, point.plan) <= kLinkTolerance + 1e-9);
  checker::VerifyOptions verify;
  verify.reaches_both_ends = false;
  const checker::Verification verified = checker::verify_frontier(dag, robust, {}, verify);
  RC_ASSERT((verified.ok() ? "" : verified.findings[0].message) == "");
}

RC_GTEST_PROP(RobustFrontier, IsTheFrontierWhereLatenciesAreKnown, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  PlannerOptions options;
  options.deadlines = 10;
  const model::Frontier frontier = plan_exact(dag, options);
  std::vector<Seconds> same;
  for (const model::Dependency& d : dag.dependencies) same.push_back(d.latency);
  for (const LatencySets& sets : {LatencySets{}, LatencySets{same}}) {
    const model::Frontier robust = robust_frontier(dag, sets, frontier, {});
    RC_ASSERT(robust.points.size() == frontier.points.size());
    for (std::size_t p = 0; p < robust.points.size(); ++p) RC_ASSERT(robust.points[p].plan == frontier.points[p].plan);
  }
}

}  // namespace
}  // namespace perseus::planner
