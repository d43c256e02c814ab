#include "planning/graph/bounded_max_flow.h"

#include <gtest/gtest.h>

namespace perseus::graph {
namespace {

using Arc = BoundedMaxFlow::Arc;
constexpr auto kUnbounded = BoundedMaxFlow::kUnbounded;

TEST(BoundedMaxFlow, PathIsAsWideAsItsNarrowestArc) {
  BoundedMaxFlow flow(3, 0, 2, {Arc{0, 1, 0, 7}, Arc{1, 2, 0, 4}});
  ASSERT_EQ(flow.solve(), FlowOutcome::maximum);
  EXPECT_EQ(flow.value(), 4);
  EXPECT_TRUE(flow.on_source_side(0));
  EXPECT_TRUE(flow.on_source_side(1));
  EXPECT_FALSE(flow.on_source_side(2));
}

TEST(BoundedMaxFlow, SmallestSourceSideAmongEqualCuts) {
  BoundedMaxFlow flow(4, 0, 3, {Arc{0, 1, 0, 5}, Arc{1, 2, 0, 5}, Arc{2, 3, 0, 5}});
  ASSERT_EQ(flow.solve(), FlowOutcome::maximum);
  EXPECT_FALSE(flow.on_source_side(1));
}

// Two computations in series beside a third that the lower bound forces to carry flow backwards over the cut: the case
// in which a computation is slowed down. Cut {s, 2}: 3 + 4 - 2.
TEST(BoundedMaxFlow, LowerBoundOfBackwardArcLowersTheCut) {
  //        10        3
  //   s -------> 1 -----> t
  //   |          | [2, 9]  ^
  //   +--> 2 <---+         |      1 -> 2 goes backwards over the cut {s, 2}
  //    3   +---------------+
  //             4
  BoundedMaxFlow flow(
      4, 0, 3, {Arc{0, 1, 0, 3}, Arc{0, 2, 0, kUnbounded}, Arc{1, 2, 2, 9}, Arc{2, 3, 0, 4}, Arc{1, 3, 0, kUnbounded}});
  ASSERT_EQ(flow.solve(), FlowOutcome::maximum);
  EXPECT_EQ(flow.value(), 3 + 4 - 2);
  EXPECT_EQ(flow.flow(2), 2);
  EXPECT_TRUE(flow.on_source_side(2));
  EXPECT_FALSE(flow.on_source_side(1));
}

TEST(BoundedMaxFlow, PathWithoutBoundsIsAnAnswer) {
  BoundedMaxFlow flow(3, 0, 2, {Arc{0, 1, 5, kUnbounded}, Arc{1, 2, 0, kUnbounded}, Arc{0, 2, 0, 3}});
  EXPECT_EQ(flow.solve(), FlowOutcome::unbounded);
}

TEST(BoundedMaxFlow, LowerBoundThatNothingCanCarryIsAnAnswer) {
  BoundedMaxFlow flow(3, 0, 2, {Arc{0, 1, 0, 2}, Arc{1, 2, 3, 9}});
  EXPECT_EQ(flow.solve(), FlowOutcome::infeasible);
  flow.set_bounds(0, 0, 4);
  ASSERT_EQ(flow.solve(), FlowOutcome::maximum);
  EXPECT_EQ(flow.value(), 4);
}

TEST(BoundedMaxFlow, SolvesAgainAfterBoundsTighten) {
  BoundedMaxFlow flow(4, 0, 3, {Arc{0, 1, 0, 9}, Arc{1, 3, 0, 9}, Arc{0, 2, 0, 9}, Arc{2, 3, 0, 9}});
  ASSERT_EQ(flow.solve(), FlowOutcome::maximum);
  EXPECT_EQ(flow.value(), 18);
  flow.set_bounds(1, 0, 2);
  ASSERT_EQ(flow.solve(), FlowOutcome::maximum);
  EXPECT_EQ(flow.value(), 11);
  EXPECT_EQ(flow.flow(0), 2);
  flow.set_bounds(0, 0, 0);
  EXPECT_EQ(flow.solve(), FlowOutcome::maximum);
  EXPECT_EQ(flow.value(), 9);
}

TEST(BoundedMaxFlow, NoArcs) {
  BoundedMaxFlow flow(2, 0, 1, {});
  ASSERT_EQ(flow.solve(), FlowOutcome::maximum);
  EXPECT_EQ(flow.value(), 0);
}

}  // namespace
}  // namespace perseus::graph
