// Loading as a function of the clock: the line is found where plans show one, and only there.
#include "evaluation/calibration/stage_loading.h"

#include <gtest/gtest.h>

#include "tests/support/synthetic_trace.h"

namespace perseus::calibration {
namespace {

using testing::SeededDice;
using testing::TrueRun;

std::vector<StageLoading> loading_of(const model::RunTrace& trace, int microbatches) {
  return measured_loading(trace, testing::all_plans(trace), microbatches);
}

TEST(StageLoading, FollowsTheClockOfTheFirstStagesForwards) {
  TrueRun run;
  run.loading_rise_per_mhz = 5e-4;
  SeededDice dice(1);
  const std::vector<StageLoading> found = loading_of(testing::synthetic_trace(run, dice), run.microbatches);
  ASSERT_EQ(found.size(), 2U);
  const Megahertz lowest = testing::synthetic_clocks().back();
  for (const int mhz : {930, 1050, 1170, 1290})
    EXPECT_NEAR(found[0].at(Megahertz(mhz)) / run.loading_at(0, Megahertz(mhz), lowest), 1, 1e-9) << mhz;
  EXPECT_EQ(found[1].rise_per_mhz, 0);
  EXPECT_NEAR(found[1].at(Megahertz(930)) / run.loading, 1, 1e-9);
}

TEST(StageLoading, IsConstantBeyondTheClocksOfThePlans) {
  StageLoading loading{0, Seconds(0.01), {Seconds(0.02), {}}, 1e-3, 1000, 900, 1100};
  EXPECT_DOUBLE_EQ(loading.at(Megahertz(1000)).value(), 0.02);
  EXPECT_DOUBLE_EQ(loading.at(Megahertz(1100)).value(), 0.022);
  EXPECT_EQ(loading.at(Megahertz(1400)), loading.at(Megahertz(1100)));
  EXPECT_EQ(loading.at(Megahertz(500)), loading.at(Megahertz(900)));
}

TEST(StageLoading, IsConstantWhereItDoesNotFollowTheClock) {
  int lines = 0;
  constexpr int traces = 40;
  for (int seed = 0; seed < traces; ++seed) {
    TrueRun run;
    run.plans = 30;
    SeededDice dice(seed);
    model::RunTrace trace = testing::synthetic_trace(run, dice);
    for (model::TracedPlan& plan : trace.plans) plan.loading[0] = plan.loading[0] * dice.real(0.95, 1.05);
    lines += loading_of(trace, run.microbatches)[0].rise_per_mhz != 0 ? 1 : 0;
  }
  EXPECT_LE(lines, traces / 10);
}

TEST(StageLoading, NeedsThreePlansForALine) {
  TrueRun run;
  run.plans = 2;
  run.loading_rise_per_mhz = 5e-4;
  SeededDice dice(3);
  EXPECT_EQ(loading_of(testing::synthetic_trace(run, dice), run.microbatches)[0].rise_per_mhz, 0);
}

}  // namespace
}  // namespace perseus::calibration
