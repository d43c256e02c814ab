#include "training/client/step_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace perseus::client {
namespace {

class StepShapesTest : public ::testing::Test {
 protected:
  void step(int microbatches, int other_window = -1) {
    Step step;
    step.microbatches = microbatches;
    step.other_window = other_window;
    shapes.ran(step, now_s);
    now_s += 1;
    if (auto one = shapes.news()) news.push_back(*one);
  }
  void steps(int count, int microbatches, int other_window = -1) {
    for (int i = 0; i < count; ++i) step(microbatches, other_window);
  }
  void planned(int first, const std::vector<int>& others = {}) {
    ClockPlan plan;
    plan.microbatches = first;
    for (const int microbatches : others) plan.others.push_back({microbatches, 1, 1, {}});
    shapes.planned(plan);
  }

  StepShapes shapes{4};
  double now_s = 0;
  std::vector<ShapeNews> news;
};

TEST_F(StepShapesTest, StepsAsRegisteredAreNoNews) {
  steps(100, 4);
  planned(4);
  steps(100, 4);
  EXPECT_THAT(news, ::testing::IsEmpty());
}

TEST_F(StepShapesTest, AShapeIsNewFromItsSecondStepOnAndThenPrevails) {
  planned(4);
  steps(100, 4);
  step(8);
  EXPECT_THAT(news, ::testing::IsEmpty());  // a single short or long batch
  step(8);
  EXPECT_THAT(news, ::testing::ElementsAre(ShapeNews{8, false, ""}));
  planned(4, {8});
  steps(40, 8);
  EXPECT_THAT(news, ::testing::ElementsAre(ShapeNews{8, false, ""}, ShapeNews{8, true, ""}));
  planned(8, {4});
  steps(200, 8);
  EXPECT_EQ(news.size(), 2);
}

TEST_F(StepShapesTest, ShapesThatAlternateAreNewOnceAndNoneOfThemPrevails) {
  planned(4);
  for (int i = 0; i < 20; ++i) steps(1 + i % 2, i % 2 == 0 ? 4 : 8);
  EXPECT_THAT(news, ::testing::ElementsAre(ShapeNews{8, false, ""}));
  planned(4, {8});
  for (int i = 0; i < 200; ++i) step(i % 2 == 0 ? 4 : 8);
  for (int i = 0; i < 20; ++i) steps(10, i % 2 == 0 ? 4 : 8);
  EXPECT_EQ(news.size(), 1);
}

TEST_F(StepShapesTest, TheSameNewsComeAgainIfNoPlanFollows) {
  planned(4);
  steps(20, 8);
  EXPECT_EQ(news.size(), 1);
  now_s += 60;
  step(8);
  EXPECT_EQ(news.size(), 2);
}

TEST_F(StepShapesTest, WhereEveryStepDiffersNoPlanCanFitUntilTheySettle) {
  planned(4);
  for (int i = 0; i < 60; ++i) step(4 + i * 7 % 9);  // 4 .. 12
  EXPECT_TRUE(shapes.vary());
  int varies = 0;
  for (const ShapeNews& one : news) varies += one.varies.empty() ? 0 : 1;
  EXPECT_EQ(varies, 1);
  EXPECT_THAT(news.back().varies, ::testing::HasSubstr("9 numbers of microbatches, from 4 to 12"));
  const std::size_t before = news.size();
  steps(70, 6);
  EXPECT_FALSE(shapes.vary());
  ASSERT_GT(news.size(), before);
  EXPECT_EQ(news[before], (ShapeNews{6, false, ""}));
}

TEST_F(StepShapesTest, ARampOfManySizesIsNoVariation) {
  planned(1);
  for (int size = 1; size < 20; ++size) steps(6, size);
  EXPECT_FALSE(shapes.vary());
}

TEST_F(StepShapesTest, AWindowOfAnotherShapeIsMissedAfterTwoSteps) {
  steps(3, 4);
  step(8, 5);
  EXPECT_EQ(shapes.window_missed(), std::nullopt);
  step(8, 5);
  EXPECT_EQ(shapes.window_missed(), 5);
  EXPECT_THAT(news, ::testing::ElementsAre(ShapeNews{8, true, ""}));
  steps(5, 8, 5);
  EXPECT_EQ(shapes.window_missed(), std::nullopt);  // once
}

TEST_F(StepShapesTest, AWindowIsNotMissedWhileShapesAlternate) {
  for (int i = 0; i < 10; ++i) {
    step(4);
    step(8, 5);
  }
  EXPECT_EQ(shapes.window_missed(), std::nullopt);
}

}  // namespace
}  // namespace perseus::client
