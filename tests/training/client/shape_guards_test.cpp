#include "training/client/shape_guards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace perseus::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

ClockPlan plan_of(std::int64_t version) {
  ClockPlan plan;
  plan.version = version;
  plan.kind = ClockPlan::Kind::plan;
  plan.microbatches = 4;
  plan.iteration_time_s = plan.maximum_clock_time_s = 1;
  plan.others.push_back({8, 2, 2, {}});
  return plan;
}

void run(ShapeGuards& guards, int count, int microbatches, double time_s, std::int64_t version, bool followed) {
  for (int i = 0; i < count; ++i) guards.take({version, followed, !followed, time_s, 0, false, microbatches});
}

TEST(ShapeGuards, EveryShapeNeedsIterationsOfItsOwnAtTheHighestClock) {
  ShapeGuards guards(0.01);
  EXPECT_EQ(guards.allowed(), std::nullopt);
  run(guards, 5, 4, 1, 0, false);
  guards.arrives(plan_of(1));
  EXPECT_THAT(guards.allowed(), Optional(ElementsAre(4)));
  run(guards, 5, 8, 2, 1, false);
  EXPECT_THAT(guards.allowed(), Optional(UnorderedElementsAre(4, 8)));
}

TEST(ShapeGuards, IterationsOfAnotherShapeDropNoPlan) {
  ShapeGuards guards(0.01);
  run(guards, 5, 4, 1, 0, false);
  run(guards, 5, 8, 2, 0, false);
  guards.arrives(plan_of(1));
  for (int i = 0; i < 40; ++i) {
    run(guards, 1, 4, 1, 1, true);
    run(guards, 1, 8, 2, 1, true);
  }
  EXPECT_EQ(guards.take_dropped(), std::nullopt);
  EXPECT_THAT(guards.allowed(), Optional(UnorderedElementsAre(4, 8)));
}

TEST(ShapeGuards, ASlowShapeLosesItsPlanAndTheOthersKeepTheirs) {
  ShapeGuards guards(0.01);
  run(guards, 5, 4, 1, 0, false);
  run(guards, 5, 8, 2, 0, false);
  guards.arrives(plan_of(1));
  run(guards, 5, 4, 1, 1, true);
  std::optional<DroppedPlan> dropped;
  for (int i = 0; i < 300 && !dropped; ++i) {
    const std::vector<int> allowed = *guards.allowed();
    const bool follows = std::ranges::find(allowed, 8) != allowed.end();
    run(guards, 1, 8, follows ? 3 : 2, 1, follows);
    dropped = guards.take_dropped();
  }
  ASSERT_TRUE(dropped);
  EXPECT_EQ(dropped->microbatches, 8);
  EXPECT_THAT(guards.allowed(), Optional(ElementsAre(4)));
}

TEST(ShapeGuards, ShapesThatComeInBlocksDoNotEscapeJudgment) {
  ShapeGuards guards(0.01);
  double slower_s = 0;
  std::int64_t version = 0;
  int iterations = 0;
  // More shapes than the guards of which are kept.
  for (int block = 0; block < 300; ++block) {
    const int microbatches = 1 + block % 40;
    for (int i = 0; i < 20; ++i, ++iterations) {
      ClockPlan plan = plan_of(++version);
      plan.microbatches = microbatches;
      plan.others.clear();
      guards.arrives(plan);
      const std::vector<int> allowed = *guards.allowed();
      const bool follows = std::ranges::find(allowed, microbatches) != allowed.end();
      slower_s += follows ? 0.25 : 0;
      run(guards, 1, microbatches, follows ? 1.25 : 1, version, follows);
    }
  }
  EXPECT_LE(slower_s, 0.006 * iterations + 12);
}

TEST(ShapeGuards, TheHighestClockFromALaterIterationOnFreesNoSlowPlan) {
  ShapeGuards guards(0.01);
  run(guards, 5, 4, 1, 0, false);
  guards.arrives(plan_of(1));
  run(guards, 3, 4, 6, 1, true);
  EXPECT_THAT(guards.allowed(), Optional(IsEmpty())) << "a trial";
  ClockPlan later = plan_of(2);
  later.kind = ClockPlan::Kind::maximum_clock;
  later.from_iteration = 1'000'000'000;
  guards.arrives(later);
  EXPECT_THAT(guards.allowed(), Optional(IsEmpty())) << "the slow plan is in force until then";
}

TEST(ShapeGuards, WithoutJudgmentEverythingIsAllowed) {
  ShapeGuards guards(-1);
  guards.arrives(plan_of(1));
  EXPECT_EQ(guards.allowed(), std::nullopt);
}

}  // namespace
}  // namespace perseus::client
