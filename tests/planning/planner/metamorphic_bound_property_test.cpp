// Equivalent formulations of a problem have the same lower bound.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "oracles/curves.h"
#include "oracles/dice.h"
#include "oracles/instances.h"
#include "oracles/longest_path.h"
#include "oracles/rapidcheck_assert.h"
#include "oracles/transformations.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"

namespace perseus::planner {
namespace {

using testing::ShrinkingDice;

model::LowerBound bound_of(const model::ComputationDag& dag) { return compute_lower_bound(dag).bound; }

RC_GTEST_PROP(MetamorphicBound, ScalingEnergiesScalesTheCurve, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const double factor = std::pow(10.0, dice.roll(-6, 9));
  const model::ComputationDag scaled = testing::scale_energies(dag, factor);
  RC_ASSERT_THAT(testing::same_curve(dag, bound_of(dag), bound_of(scaled), 1, factor));
}

RC_GTEST_PROP(MetamorphicBound, ScalingTimesScalesTheCurve, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const double factor = std::pow(10.0, dice.roll(-4, 4));
  const model::ComputationDag scaled = testing::scale_times(dag, factor);
  RC_ASSERT_THAT(testing::same_curve(dag, bound_of(dag), bound_of(scaled), factor, 1));
}

RC_GTEST_PROP(MetamorphicBound, ReplicatedAcceleratorsScaleEnergies, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const int count = dice.roll(2, 8);
  const model::ComputationDag replicated = testing::replicate_accelerators(dag, count);
  RC_ASSERT_THAT(testing::same_curve(dag, bound_of(dag), bound_of(replicated), 1, count));
}

RC_GTEST_PROP(MetamorphicBound, NumbersMeanNothing, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const model::ComputationDag renumbered = testing::renumber(dice, dag);
  RC_ASSERT_THAT(testing::same_curve(dag, bound_of(dag), bound_of(renumbered)));
}

RC_GTEST_PROP(MetamorphicBound, SplittingInSeriesKeepsTheBound, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const int computation = dice.roll(0, static_cast<int>(dag.computations.size()) - 1);
  const model::ComputationDag split = testing::split_in_series(dag, computation, dice.real(0.1, 0.9));
  RC_ASSERT_THAT(testing::same_curve(dag, bound_of(dag), bound_of(split)));
}

RC_GTEST_PROP(MetamorphicBound, LatencyDelaysTheFastestPlanByItsDuration, ()) {
  ShrinkingDice dice;
  model::ComputationDag dag = testing::random_dag(dice);
  const Seconds latency(dice.real(0.001, 1));
  const model::LowerBound before = bound_of(dag);
  for (model::Dependency& dependency : dag.dependencies)
    if (dag.computations[dependency.before].rank != dag.computations[dependency.after].rank)
      dependency.latency += latency;
  model::Plan fastest;
  for (const model::Computation& computation : dag.computations) {
    const auto& options = dag.types[computation.type].options;
    fastest.push_back(
        static_cast<std::uint16_t>(std::ranges::min_element(options, {}, &model::Measurement::time) - options.begin()));
  }
  const model::LowerBound after = bound_of(dag);
  RC_ASSERT(std::abs(after.t_min() / testing::realize(dag, fastest).time - 1) <= 1e-9);
  RC_ASSERT(after.t_min() >= before.t_min() * (1 - 1e-9));
  // What the computations can save does not depend on the transfers between them.
  RC_ASSERT(
      std::abs((after.vertices.back().effective_energy - before.vertices.back().effective_energy).value()) <=
      1e-9 *
          std::abs((before.vertices.back().effective_energy + dag.total_blocking_power() * before.t_star()).value()));
}

}  // namespace
}  // namespace perseus::planner
