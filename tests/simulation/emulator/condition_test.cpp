// Effect of throttling on the options of a computation, and of several conditions at once.
#include "simulation/emulator/condition.h"

#include <gtest/gtest.h>

#include "simulation/emulator/drawn_stragglers.h"
#include "tests/support/emulated_job.h"

namespace perseus::emulator {
namespace {

const model::ComputationDag& dag() {
  static const model::ComputationDag made =
      testing::kinds_of(testing::small_scenario(1), testing::one_stage_profile())[0].dag;
  return made;
}

TEST(Throttled, OnlyFasterComputationsGetSlower) {
  const model::ComputationDag slow = throttled_dag(dag(), {{{0, 1.25, 1}}, {}});
  EXPECT_DOUBLE_EQ(slow.types[0].options[0].time.value(), 1.25);
  EXPECT_DOUBLE_EQ(slow.types[0].options[0].energy.value(), 105);
  EXPECT_EQ(slow.types[0].options[1].time, dag().types[0].options[1].time);
  EXPECT_EQ(slow.types[0].options[1].energy, dag().types[0].options[1].energy);
  EXPECT_TRUE(slow.validate().ok());
}

TEST(Throttled, BelowTheLowestClockItPauses) {
  const model::ComputationDag slow = throttled_dag(dag(), {{{0, 5, 1}}, {}});
  for (const model::Measurement& option : slow.types[0].options) {
    EXPECT_DOUBLE_EQ(option.time.value(), 5);
    EXPECT_DOUBLE_EQ(option.energy.value(), 120 + 3 * 50);
  }
}

TEST(Throttled, UnthrottledRanksWait) {
  const model::ComputationDag slow = throttled_dag(dag(), {{{0, 1.5, 0.25}}, {}});
  EXPECT_DOUBLE_EQ(slow.types[0].options[0].energy.value(), 0.25 * 110 + 0.75 * (100 + 0.5 * 50));
}

TEST(Throttled, OtherStagesStayAsTheyAre) {
  const model::ComputationDag same = throttled_dag(dag(), {{{7, 3, 1}}, {}});
  EXPECT_EQ(same.types[0].options[0].time, dag().types[0].options[0].time);
}

TEST(ConditionOf, TheWorstOfEachRules) {
  model::Scenario scenario = testing::small_scenario(1);
  scenario.tensor_parallel = 8;
  const PipelineKind kind = testing::kinds_of(scenario, testing::one_stage_profile())[0];
  model::Straggler a = testing::straggler(model::StragglerCause::thermal, 0, 1.2);
  model::Straggler b = testing::straggler(model::StragglerCause::power, 0, 1.1);
  model::Straggler c = testing::straggler(model::StragglerCause::storage, 0, 1.5);
  model::Straggler d = testing::straggler(model::StragglerCause::storage, 0, 1.25);
  b.hardship.gpus = 2;
  const Condition both = condition_of({&b.hardship, &a.hardship, &c.hardship, &d.hardship}, kind);
  ASSERT_EQ(both.throttled.size(), 1u);
  EXPECT_EQ(both.throttled[0].slowdown, 1.2);
  EXPECT_EQ(both.throttled[0].share, 1);
  EXPECT_DOUBLE_EQ(both.stall.value(), 1);
  EXPECT_EQ(both, condition_of({&d.hardship, &c.hardship, &a.hardship, &b.hardship}, kind));
  EXPECT_DOUBLE_EQ(condition_of({&b.hardship}, kind).throttled[0].share, 0.25);
  EXPECT_TRUE(condition_of({}, kind).healthy());
}

TEST(CheckStragglers, ErrorsNameTheMismatch) {
  model::Scenario scenario = testing::small_scenario(2);
  const std::vector<PipelineKind> kinds = testing::kinds_of(scenario, testing::one_stage_profile());
  model::Straggler far = testing::straggler(model::StragglerCause::thermal, 0, 1.2);
  far.hardship.stage = 1;
  scenario.stragglers = {far};
  EXPECT_EQ(check_stragglers(scenario, kinds).error().message,
            "small.toml:9: [[straggler]]: stage: 1; allowed: 0..0, the stages of kind 'whole'");
  far.hardship.stage = 0;
  far.hardship.gpus = 2;
  scenario.stragglers = {far};
  EXPECT_EQ(check_stragglers(scenario, kinds).error().message,
            "small.toml:9: [[straggler]]: gpus: 2; allowed: 1..1, the GPUs of stage 0 of kind 'whole'");
}

TEST(DrawStragglers, SameSeedSameStragglersAndOneMoreDistributionChangesNoOther) {
  model::Scenario scenario = testing::small_scenario(5);
  scenario.duration = Seconds(36000);
  model::RandomStragglers thermal;
  thermal.mean_between = Seconds(1000);
  thermal.mean_duration = Seconds(100);
  thermal.least_slowdown = 1.1;
  thermal.most_slowdown = 1.4;
  thermal.one_stage = true;
  scenario.random = {thermal};
  const std::vector<PipelineKind> kinds = testing::kinds_of(scenario, testing::one_stage_profile());
  const std::vector<model::Straggler> first = draw_stragglers(scenario, kinds).value();
  // 5 pipelines, 36,000 s, one every 1,100 s: 164 expected.
  EXPECT_GT(first.size(), 100u);
  EXPECT_LT(first.size(), 250u);
  double last_s = 0;
  for (const model::Straggler& s : first) {
    EXPECT_GE(s.at.value(), last_s);
    last_s = s.at.value();
    EXPECT_GE(s.hardship.slowdown, 1.1);
    EXPECT_LE(s.hardship.slowdown, 1.4);
    EXPECT_EQ(s.hardship.stage, 0);
  }
  model::RandomStragglers storage = thermal;
  storage.hardship.cause = model::StragglerCause::storage;
  scenario.random.push_back(storage);
  const std::vector<model::Straggler> more = draw_stragglers(scenario, kinds).value();
  std::vector<double> thermal_at, first_at;
  for (const model::Straggler& s : more)
    if (s.hardship.cause == model::StragglerCause::thermal) thermal_at.push_back(s.at.value());
  for (const model::Straggler& s : first) first_at.push_back(s.at.value());
  EXPECT_EQ(thermal_at, first_at);
  scenario.seed = 2;
  EXPECT_NE(draw_stragglers(scenario, kinds).value()[0].at, first[0].at);
  scenario.random[0].mean_between = scenario.random[0].mean_duration = Seconds(0.01);
  EXPECT_FALSE(draw_stragglers(scenario, kinds).ok());
}

}  // namespace
}  // namespace perseus::emulator
