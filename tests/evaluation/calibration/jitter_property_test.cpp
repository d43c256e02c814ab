// Jitter: its parts are found in traces that have them, and it makes iterations later only where paths compete.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "oracles/instances.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "tests/support/jitter.h"
#include "tests/support/model_samples.h"
#include "tests/support/synthetic_trace.h"

namespace perseus::calibration {
namespace {

using testing::SeededDice;
using testing::ShrinkingDice;
using testing::TrueRun;

TEST(JitterParts, AreThoseOfTheTrace) {
  constexpr double independent = 2e-3, of_stage = 4e-3, of_iteration = 6e-3;
  constexpr int iterations = 9;
  TrueRun run;
  run.stages = 6;
  run.plans = 2;
  run.microbatches = 12;
  SeededDice dice(3);
  model::RunTrace trace = testing::synthetic_trace(run, dice);
  EXPECT_FALSE(measured_jitter(trace)) << "no plan ran twice";
  for (int repeat = 0; repeat < 60; ++repeat) {
    for (const int p : {0, 1}) trace.plans.push_back(trace.plans[p]);
  }
  const auto moved = [&](double relative) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += dice.real(0, 1);
    return 1 + relative * sum / std::sqrt(iterations);
  };
  for (model::TracedPlan& plan : trace.plans) {
    plan.iterations = iterations;
    const double all = moved(of_iteration);
    for (auto& stage : plan.stages) {
      const double own = moved(of_stage);
      for (model::TracedComputation& c : stage) c.time = c.time * (all * own * moved(independent));
    }
  }
  const Jitter found = measured_jitter(trace).value();
  EXPECT_NEAR(found.independent / independent, 1, 0.1);
  EXPECT_NEAR(found.of_stage / of_stage, 1, 0.15);
  EXPECT_NEAR(found.of_iteration / of_iteration, 1, 0.2);
}

TEST(JitterParts, DoNotDependOnIterationsOfOtherPlans) {
  TrueRun run;
  run.plans = 2;
  SeededDice dice(5);
  model::RunTrace trace = testing::synthetic_trace(run, dice);
  trace.plans[1].iterations = 9;
  trace.plans.push_back(trace.plans[1]);
  for (model::TracedComputation& c : trace.plans[2].stages[0]) c.time = c.time * dice.real(0.98, 1.02);
  const Jitter found = measured_jitter(trace).value();
  trace.plans[0].iterations = 100;
  EXPECT_DOUBLE_EQ(measured_jitter(trace)->independent, found.independent);
  trace.plans[1].iterations = trace.plans[2].iterations = 36;
  EXPECT_DOUBLE_EQ(measured_jitter(trace)->independent, 2 * found.independent);
}

TEST(JitterParts, AreNoneWhereRunsAgree) {
  SeededDice dice(4);
  model::RunTrace trace = testing::synthetic_trace({}, dice);
  trace.plans.push_back(trace.plans[0]);
  const Jitter found = measured_jitter(trace).value();
  EXPECT_LT(found.independent + found.of_stage + found.of_iteration, 1e-12);
}

RC_GTEST_PROP(Lateness, IsNeverNegativeAndGrowsWithJitter, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const model::Plan plan = testing::random_plan(dice, dag);
  const Jitter jitter{dice.real(0, 0.05), dice.real(0, 0.05), 0};
  const Jitter twice{2 * jitter.independent, 2 * jitter.of_stage, 0};
  const double one = lateness(dag, plan, jitter, 5);
  RC_ASSERT(one >= -1e-12);
  RC_ASSERT(lateness(dag, plan, twice, 5) >= one - 1e-12);
  RC_ASSERT(std::abs(lateness(dag, plan, {}, 5)) <= 1e-12);
}

TEST(Lateness, NeedsPathsThatCompete) {
  const auto late = [](int stages, double slow) {
    const model::Schedule schedule = model::make_schedule("1f1b", {stages, 16, 1}).value();
    model::Profile profile = testing::profile_for_any_schedule(stages);
    for (model::ProfileEntry& entry : profile.entries) {
      entry.measurements[0].clock = Megahertz(1000);
      if (entry.stage == 0) entry.measurements[0].time = slow * entry.measurements[0].time;
    }
    const model::ComputationDag dag = model::build_dag(profile, schedule, {}).value();
    return lateness(dag, model::all_maximum_clock(dag), {0.01, 0.01, 0});
  };
  EXPECT_NEAR(late(1, 1), 0, 1e-12);
  const double balanced = late(4, 1), unbalanced = late(4, 1.5);
  EXPECT_GT(balanced, 5e-3);
  EXPECT_LT(unbalanced, 0.2 * balanced);
}

}  // namespace
}  // namespace perseus::calibration
