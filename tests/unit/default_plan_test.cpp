#include "model/default_plan.h"

#include <gtest/gtest.h>

#include "model/reference_plans.h"
#include "planner/exact.h"
#include "planner/realise.h"

namespace perseus {
namespace {

Frontier points_at(std::vector<double> times_s) {
  Frontier frontier;
  for (const double time_s : times_s) frontier.points.push_back({Seconds(time_s), {}, {}, {}, {}});
  return frontier;
}

TEST(DefaultPlan, IsTheSlowestOneThatIsNotSlowerThanMaximumClock) {
  const Frontier frontier = points_at({4, 3, 2.05, 2});
  EXPECT_EQ(default_point(frontier, Seconds(2.1)), 2);
  EXPECT_EQ(default_point(frontier, Seconds(2.05)), 2);
  EXPECT_EQ(default_point(frontier, Seconds(2.04)), 3);
  EXPECT_EQ(time_without_straggler(frontier, Seconds(2.1)), Seconds(2.1));
}

TEST(DefaultPlan, TheLastDigitsOfASumDoNotMakeAPlanSlower) {
  const double t_max_s = 0.1 + 0.2;  // 0.30000000000000004
  EXPECT_EQ(default_point(points_at({0.4, t_max_s, 0.2}), Seconds(0.3)), 1);
}

TEST(DefaultPlan, NoPlanIsAsFastAsMaximumClockTheFastest) {
  EXPECT_EQ(default_point(points_at({4, 3, 2}), Seconds(1)), 2);
  EXPECT_EQ(time_without_straggler(points_at({4, 3, 2}), Seconds(1)), Seconds(2));
}

TEST(DefaultPlan, AToleranceAllowsASlowerOne) {
  const Frontier frontier = points_at({4, 2.2, 2.15, 2});
  EXPECT_EQ(default_point(frontier, Seconds(2.1), {0.05, false}), 1);
  EXPECT_EQ(default_point(frontier, Seconds(2.1), {0.03, false}), 2);
}

TEST(DefaultPlan, ThePublishedMethodStartsFromItsFastest) {
  const Frontier frontier = points_at({4, 2.2, 2.15, 2});
  EXPECT_EQ(default_point(frontier, Seconds(2.2), {0, true}), 3);
  EXPECT_EQ(default_point(frontier, Seconds(2.2), {0.1, true}), 1);
}

TEST(DefaultPlan, UsualTolerancesAreThoseThatChangeThePlan) {
  const std::vector<ToleranceGain> gains = usual_tolerances(points_at({4, 2.01, 2.002, 2}), Seconds(2));
  ASSERT_EQ(gains.size(), 2U);
  EXPECT_EQ(gains[0].slowdown, 0.001);
  EXPECT_EQ(gains[0].point, 2);
  EXPECT_EQ(gains[1].slowdown, 0.01);
  EXPECT_EQ(gains[1].point, 1);
}

/// Maximum clock throttles: 1.00 s at 110 J; the clock below takes 0.99 s, the one below that 0.998 s and much less.
ComputationDag throttling_pipeline() {
  ComputationDag dag;
  const auto at = [](int mhz, double s, double j) {
    return Measurement{Megahertz(mhz), Seconds(s), Joules(j), {}, {}, 1};
  };
  dag.types = {{0, "forward", {at(5, 1, 110), at(4, 0.99, 108), at(3, 0.998, 90), at(2, 1.003, 80), at(1, 3, 60)}}};
  for (int i = 0; i < 5; ++i) dag.computations.push_back({0, 0, i});
  for (int i = 1; i < 5; ++i) dag.dependencies.push_back({i - 1, i, Seconds(0)});
  dag.rank_order = {{0, 1, 2, 3, 4}};
  dag.accelerators = {1};
  dag.blocking_power = Watts(1);
  return dag;
}

TEST(DefaultPlan, ThePlannerHasAPlanForMaximumClocksTimeHoweverFewItsDeadlines) {
  const ComputationDag dag = throttling_pipeline();
  ASSERT_TRUE(dag.validate().ok());
  const Seconds t_max = Realiser(dag).realise(all_maximum_clock(dag)).time;
  PlannerOptions options;
  options.deadlines = 2;
  options.also = {1.002 * t_max};
  const Frontier frontier = plan_exact(dag, options);
  EXPECT_LT(frontier.points.back().time, 0.995 * t_max);
  EXPECT_GT(frontier.points[default_point(frontier, t_max)].time, 0.998 * t_max);
  EXPECT_GT(frontier.points[default_point(frontier, t_max, {0.002, false})].time, 1.0005 * t_max);
}

}  // namespace
}  // namespace perseus
