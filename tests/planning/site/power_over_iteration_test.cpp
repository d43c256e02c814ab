#include "planning/site/power_over_iteration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "oracles/instances.h"
#include "planning/checker/plan_run.h"

namespace perseus::site {
namespace {

/// Two ranks of two accelerators; the second begins 1 s after the first has ended.
model::ComputationDag two_ranks() {
  model::ComputationDag dag;
  dag.types.resize(2);
  dag.types[0].options = {{Megahertz(1400), Seconds(2), Joules(800), {}, {}},
                          {Megahertz(700), Seconds(4), Joules(800), {}, {}}};
  dag.types[1].options = {{Megahertz(1400), Seconds(3), Joules(900), {}, {}}};
  dag.computations.resize(2);
  dag.computations[1].rank = 1;
  dag.computations[1].type = 1;
  dag.dependencies = {{0, 1, Seconds(1)}};
  dag.rank_order = {{0}, {1}};
  dag.accelerators = {2, 2};
  dag.blocking_power = Watts(50);
  return dag;
}

TEST(PowerOverIteration, HasAStepWhereAComputationBeginsOrEnds) {
  const model::ComputationDag dag = two_ranks();
  const PowerOverIteration power(dag);
  const PowerOverIteration::Run run = power.of({0, 0});
  EXPECT_EQ(run.makespan, Seconds(6));
  ASSERT_EQ(run.steps.size(), 4U);
  const double from_s[] = {0, 2, 3, 6}, power_w[] = {500, 200, 400, 200};
  for (int k = 0; k < 4; ++k) {
    EXPECT_DOUBLE_EQ(run.steps[k].from.value(), from_s[k]);
    EXPECT_DOUBLE_EQ(run.steps[k].power.value(), power_w[k]);
  }
  EXPECT_EQ(power.of({1, 0}).makespan, Seconds(8));
}

TEST(PowerOverIteration, HasTheEnergyThatTheCheckerFinds) {
  testing::SeededDice dice(2026);
  for (int k = 0; k < 50; ++k) {
    const model::ComputationDag dag = testing::random_dag(dice);
    const model::Plan plan = testing::random_plan(dice, dag);
    const checker::PlanRun expected = checker::run_plan(dag, plan);
    const PowerOverIteration::Run run = PowerOverIteration(dag).of(plan);
    EXPECT_NEAR(run.makespan.value(), expected.makespan.value(), 1e-9 * expected.makespan.value());
    Joules energy;
    for (std::size_t s = 0; s < run.steps.size(); ++s) {
      const Seconds until = s + 1 < run.steps.size() ? run.steps[s + 1].from : run.makespan;
      energy += run.steps[s].power * (until - run.steps[s].from);
    }
    EXPECT_NEAR(energy.value(), expected.energy.value(), 1e-6 * std::abs(expected.energy.value()));
  }
}

}  // namespace
}  // namespace perseus::site
