// Equivalent formulations of a problem have the same realized plans.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "oracles/curves.h"
#include "oracles/dice.h"
#include "oracles/instances.h"
#include "oracles/rapidcheck_assert.h"
#include "oracles/transformations.h"
#include "planning/checker/verify_plan.h"
#include "planning/planner/exact.h"

namespace perseus::planner {
namespace {

using testing::ShrinkingDice;

PlannerOptions few_deadlines() {
  PlannerOptions options;
  options.deadlines = 30;
  return options;
}

RC_GTEST_PROP(MetamorphicFrontier, ScalingEnergiesKeepsItTrue, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const double factor = std::pow(10.0, dice.roll(-6, 9));
  const model::ComputationDag scaled = testing::scale_energies(dag, factor);
  RC_ASSERT(checker::verify_frontier(scaled, plan_exact(scaled, few_deadlines())).ok());
}

RC_GTEST_PROP(MetamorphicFrontier, ScalingTimesKeepsItTrue, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const double factor = std::pow(10.0, dice.roll(-4, 4));
  const model::ComputationDag scaled = testing::scale_times(dag, factor);
  RC_ASSERT(checker::verify_frontier(scaled, plan_exact(scaled, few_deadlines())).ok());
}

RC_GTEST_PROP(MetamorphicFrontier, ScalingEnergiesByAPowerOfTwoKeepsEveryPlan, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const double factor = std::pow(2.0, dice.roll(-20, 30));
  const model::Frontier frontier = plan_exact(dag, few_deadlines());
  const model::Frontier scaled = plan_exact(testing::scale_energies(dag, factor), few_deadlines());
  RC_ASSERT(scaled.points.size() == frontier.points.size());
  for (std::size_t i = 0; i < frontier.points.size(); ++i) {
    RC_ASSERT(scaled.points[i].plan == frontier.points[i].plan);
    RC_ASSERT(scaled.points[i].time == frontier.points[i].time);
    RC_ASSERT(scaled.points[i].energy == frontier.points[i].energy * factor);
  }
}

RC_GTEST_PROP(MetamorphicFrontier, NumbersMeanNothing, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const model::ComputationDag renumbered = testing::renumber(dice, dag);
  const model::Frontier frontier = plan_exact(dag, few_deadlines());
  const model::Frontier other = plan_exact(renumbered, few_deadlines());
  // Ties may be broken differently in between, but both ends must be equal.
  RC_ASSERT(std::abs(frontier.points.back().time / other.points.back().time - 1) <= 1e-9);
  const model::FrontierPoint& slowest = frontier.points.front();
  const Joules difference = slowest.effective_energy - other.points.front().effective_energy;
  RC_ASSERT(std::abs(difference.value()) <= 1e-9 * slowest.energy.value());
}

RC_GTEST_PROP(MetamorphicFrontier, NamesOfStagesMeanNothing, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  model::ComputationDag renamed = dag;
  for (model::ComputationType& type : renamed.types) {
    type.stage = 1000 - 7 * type.stage;
    type.instruction += "_";
  }
  const model::Frontier frontier = plan_exact(dag, few_deadlines());
  const model::Frontier other = plan_exact(renamed, few_deadlines());
  RC_ASSERT(other.points.size() == frontier.points.size());
  for (std::size_t i = 0; i < frontier.points.size(); ++i) RC_ASSERT(other.points[i].plan == frontier.points[i].plan);
}

RC_GTEST_PROP(MetamorphicFrontier, ADominatedOptionChangesNothing, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const model::ComputationDag more = testing::add_dominated_options(dice, dag);
  const model::Frontier frontier = plan_exact(dag, few_deadlines());
  const model::Frontier other = plan_exact(more, few_deadlines());
  RC_ASSERT(other.points.size() == frontier.points.size());
  for (std::size_t i = 0; i < frontier.points.size(); ++i) RC_ASSERT(other.points[i].plan == frontier.points[i].plan);
  RC_ASSERT_THAT(testing::same_curve(dag, frontier.bound, other.bound));
}

}  // namespace
}  // namespace perseus::planner
