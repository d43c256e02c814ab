#include "planning/planner/perseus_method.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace perseus::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

model::ComputationType type(std::vector<std::pair<double, double>> options) {
  model::ComputationType made;
  int clock_mhz = 1500;
  for (const auto& [time_s, energy_j] : options) {
    model::Measurement option;
    option.clock = Megahertz(clock_mhz -= 15);
    option.time = Seconds(time_s);
    option.energy = Joules(energy_j);
    made.options.push_back(option);
  }
  return made;
}

/// Paper figure on DAGs: two stages, a long computation (rank 0) beside two short ones in series (rank 1), joined.
model::ComputationDag two_paths() {
  model::ComputationDag dag;
  dag.types = {type({{2.5, 20}, {4.5, 10}}), type({{1.5, 9}, {2.5, 4}}), type({{0.5, 1}})};
  dag.computations = {{0, 0, -1}, {1, 1, -1}, {1, 1, -1}, {2, 1, -1}};
  dag.dependencies = {{1, 2, Seconds(0)}, {2, 3, Seconds(0)}, {0, 3, Seconds(0)}};
  dag.rank_order = {{0}, {1, 2, 3}};
  dag.accelerators = {1, 1};
  dag.blocking_power = Watts(0);
  return dag;
}

TEST(PerseusMethod, SpeedsUpAllCriticalPathsTogether) {
  // Planned with tau = 1 s: long 2..4 at 5 J/s, short 1..2 at 5 J each, the last 0.
  const auto run = plan_perseus(two_paths(), {.unit_time = Seconds(1), .progress = {}});
  ASSERT_TRUE(run.ok());
  ASSERT_EQ(run->steps().size(), 3U);
  EXPECT_THAT(run->durations(0), ElementsAre(4, 2, 2, 0));
  EXPECT_EQ(run->steps()[0].planned_time, Seconds(4));
  EXPECT_NEAR(run->steps()[0].planned_energy.value(), 10 + 4 + 4 + 1, 1e-9);
  EXPECT_NEAR(run->steps()[1].planned_energy.value(), 19 + 5 + 5, 1e-9);
  EXPECT_THAT(run->durations(2), ElementsAre(2, 1, 1, 0));
  EXPECT_EQ(run->steps()[2].planned_time, Seconds(2));
  EXPECT_THAT(run->plan(2), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(run->steps()[2].time, Seconds(3.5));  // flooring: 1.5 planned as 1, twice, and 0.5 as 0
  EXPECT_EQ(run->steps()[2].energy, Joules(20 + 9 + 9 + 1));
}

TEST(PerseusMethod, FitsEffectiveEnergy) {
  model::ComputationDag dag = two_paths();
  dag.blocking_power = Watts(2);
  dag.accelerators = {3, 1};
  const PerseusRun run = plan_perseus(dag, {.unit_time = Seconds(1), .progress = {}}).value();
  EXPECT_NEAR(run.curves().of(0).energy_at(4), 10 - 2 * 3 * 4, 1e-9);
  EXPECT_NEAR(run.curves().of(1).energy_at(2), 4 - 2 * 2, 1e-9);
  EXPECT_NEAR((run.steps()[0].planned_energy - run.steps()[0].planned_effective_energy).value(), 2 * 4 * 4, 1e-9);
}

TEST(PerseusMethod, OneClockHasOneStep) {
  model::ComputationDag dag = two_paths();
  dag.types = {type({{2.5, 20}}), type({{1.5, 9}}), type({{0.5, 1}})};
  const PerseusRun run = plan_perseus(dag, {.unit_time = Seconds(0.1), .progress = {}}).value();
  ASSERT_EQ(run.steps().size(), 1U);
  EXPECT_EQ(run.frontier().points.size(), 1U);
}

TEST(PerseusMethod, LatencyIsFlooredToo) {
  model::ComputationDag dag = two_paths();
  dag.dependencies[2].latency = Seconds(1.75);
  const PerseusRun run = plan_perseus(dag, {.unit_time = Seconds(1), .progress = {}}).value();
  EXPECT_EQ(run.steps()[0].planned_time, Seconds(5));
  EXPECT_EQ(run.steps()[0].time, Seconds(4.5 + 1.75 + 0.5));
}

TEST(PerseusMethod, UnitTimeMustBePositiveAndNotTooSmall) {
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const auto run = plan_perseus(two_paths(), {.unit_time = Seconds(bad), .progress = {}});
    ASSERT_FALSE(run.ok());
    EXPECT_EQ(run.error().code, ErrorCode::usage);
    EXPECT_THAT(run.error().message, HasSubstr("positive"));
  }
  const auto run = plan_perseus(two_paths(), {.unit_time = Seconds(1e-9), .progress = {}});
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error().message, HasSubstr("1e-09"));
}

TEST(PerseusMethod, CanBeStopped) {
  int questions = 0;
  StopCheck third([&] { return ++questions == 3; }, 1);
  const auto run = plan_perseus(two_paths(), {.unit_time = Seconds(0.001), .progress = {}}, third);
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().code, ErrorCode::unavailable);
  EXPECT_EQ(questions, 3);
}

TEST(PerseusMethod, ProgressEndsAtOne) {
  std::vector<double> seen;
  const PerseusOptions options = {.unit_time = Seconds(0.001), .progress = [&](double done) { seen.push_back(done); }};
  ASSERT_TRUE(plan_perseus(two_paths(), options).ok());
  ASSERT_GT(seen.size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(seen.back(), 1);
}

}  // namespace
}  // namespace perseus::planner
