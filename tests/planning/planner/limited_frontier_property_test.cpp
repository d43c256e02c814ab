// Plans for clocks that arrive late or have a minimum dwell time: the checker's own model of late clocks must agree
// with the planner's realized values.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <utility>

#include "oracles/dice.h"
#include "oracles/instances.h"
#include "oracles/published.h"
#include "planning/checker/clock_changes.h"
#include "planning/checker/plan_run.h"
#include "planning/checker/verify_plan.h"
#include "planning/planner/exact.h"
#include "tests/support/shared_data.h"

namespace perseus::checker {
namespace {

using testing::ShrinkingDice;

/// Empty if all points realize their values with late clocks and keep the dwell time; else the first error.
std::string first_finding(const model::ComputationDag& dag, const planner::PlannerOptions& limits) {
  const model::Frontier frontier = planner::plan_exact(dag, limits);
  VerifyOptions options;
  options.switch_latency = limits.switch_latency;
  options.reaches_both_ends = false;
  const Verification v = verify_frontier(dag, frontier, {}, options);
  if (!v.ok()) return v.findings[0].message;
  for (const model::FrontierPoint& point : frontier.points) {
    const PlanRun run = run_plan(dag, point.plan, {limits.switch_latency});
    for (const ClockChanges& rank : count_clock_changes(dag, point.plan, run))
      if (rank.count > 0 && rank.shortest_dwell < limits.min_dwell * (1 - 1e-9)) return "a clock changes too soon";
  }
  return "";
}

RC_GTEST_PROP(LimitedFrontier, RealizesItsPointsWithLateClocks, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  planner::PlannerOptions limits;
  limits.deadlines = 10;
  limits.switch_latency = Seconds(dice.real(0.001, 0.5));
  RC_ASSERT(first_finding(dag, limits) == "");
}

RC_GTEST_PROP(LimitedFrontier, KeepsTheDwell, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  planner::PlannerOptions limits;
  limits.deadlines = 10;
  limits.switch_latency = Seconds(dice.one_in(2) ? dice.real(0.001, 0.1) : 0);
  limits.min_dwell = Seconds(dice.real(0.001, 0.5));
  RC_ASSERT(first_finding(dag, limits) == "");
}

RC_GTEST_PROP(LimitedFrontier, ImprovesCandidatesWhoseClocksARankDoesNotShare, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  planner::PlannerOptions limits;
  limits.deadlines = 3;
  limits.switch_latency = Seconds(dice.real(0.001, 0.1));
  for (int candidates = dice.roll(1, 4); candidates > 0; --candidates) {
    model::Plan plan;
    for (const model::Computation& computation : dag.computations) {
      const int options = static_cast<int>(dag.types[computation.type].options.size());
      plan.push_back(static_cast<model::Plan::value_type>(dice.roll(0, options - 1)));
    }
    limits.candidates.push_back(std::move(plan));
  }
  RC_ASSERT(first_finding(dag, limits) == "");
}

class LimitedFrontierOf : public ::testing::TestWithParam<testing::PublishedCase> {};

TEST_P(LimitedFrontierOf, RealizesItsPointsAndKeepsTheDwell) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  planner::PlannerOptions limits;
  limits.deadlines = 20;
  limits.switch_latency = Seconds(0.015);
  limits.min_dwell = Seconds(0.2);
  EXPECT_EQ(first_finding(testing::load(data, GetParam()), limits), "");
}

INSTANTIATE_TEST_SUITE_P(Published, LimitedFrontierOf, ::testing::ValuesIn(testing::published_cases()),
                         [](const auto& published) { return published.param.name; });

}  // namespace
}  // namespace perseus::checker
