#include "planning/planner/look_up.h"

#include <gtest/gtest.h>

namespace perseus::planner {
namespace {

model::Frontier frontier_at(std::vector<double> times_s) {
  model::Frontier frontier;
  for (const double time_s : times_s) {
    model::FrontierPoint point{};
    point.time = Seconds(time_s);
    frontier.points.push_back(point);
  }
  return frontier;
}

TEST(LookUp, TakesTheSlowestPointThatIsFastEnough) {
  const model::Frontier frontier = frontier_at({4, 3, 2});
  EXPECT_EQ(look_up_index(frontier, Seconds(3.5)), 1U);
  EXPECT_EQ(look_up_index(frontier, Seconds(3)), 1U);
  EXPECT_EQ(look_up_index(frontier, Seconds(2.99)), 2U);
}

TEST(LookUp, PastTheEndOfTheFrontierItsEnd) {
  EXPECT_EQ(look_up_index(frontier_at({4, 3, 2}), Seconds(4)), 0U);
  EXPECT_EQ(look_up_index(frontier_at({4, 3, 2}), Seconds(1e9)), 0U);
}

TEST(LookUp, NoPointIsThatFastTheFastest) {
  EXPECT_EQ(look_up_index(frontier_at({4, 3, 2}), Seconds(1)), 2U);
  EXPECT_EQ(look_up_index(frontier_at({4}), Seconds(0)), 0U);
}

}  // namespace
}  // namespace perseus::planner
