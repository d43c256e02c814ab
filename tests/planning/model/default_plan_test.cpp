#include "planning/model/default_plan.h"

#include <gtest/gtest.h>

#include "planning/model/reference_plans.h"
#include "planning/planner/exact.h"
#include "planning/planner/realize.h"

namespace perseus::model {
namespace {

/// Slower plans need less energy in total: `saved_w` joules per additional second; waiting draws 10 W.
Frontier points_at(std::vector<double> times_s, double saved_w = 1) {
  Frontier frontier;
  for (const double time_s : times_s) {
    const double energy_j = 100 - saved_w * time_s;
    frontier.points.push_back({Seconds(time_s), Joules(energy_j), Joules(energy_j - 10 * time_s), {}, {}});
  }
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

/// Total energies 60, 55, 50, 56 and 80 J; waiting draws 10 W.
Frontier valley() {
  Frontier frontier;
  for (const auto& [time_s, energy_j] : {std::pair{3.0, 60.0}, {2.5, 55.0}, {2.2, 50.0}, {2.1, 56.0}, {2.0, 80.0}}) {
    frontier.points.push_back({Seconds(time_s), Joules(energy_j), Joules(energy_j - 10 * time_s), {}, {}});
  }
  return frontier;
}

TEST(DefaultPlan, HasTheLeastTotalEnergyWithinTheTolerance) {
  EXPECT_EQ(default_point(valley(), Seconds(2)), 4);
  EXPECT_EQ(default_point(valley(), Seconds(2), {0.05, false}), 3);
  EXPECT_EQ(default_point(valley(), Seconds(2), {0.1, false}), 2);
  EXPECT_EQ(default_point(valley(), Seconds(2), {0.6, false}), 2) << "slower ones need more";
  EXPECT_EQ(planned_time(valley(), Seconds(2), {0.6, false}), Seconds(2.2));
  EXPECT_EQ(usual_tolerances(valley(), Seconds(2.2)).size(), 0U);
}

TEST(DefaultPlan, AFasterPlanThanMaximumClockWhereItNeedsLess) {
  EXPECT_EQ(default_point(valley(), Seconds(2.6)), 2);
  EXPECT_EQ(time_without_straggler(valley(), Seconds(2.6)), Seconds(2.2));
  EXPECT_EQ(time_without_straggler(valley(), Seconds(2.15)), Seconds(2.15));
}

TEST(DefaultPlan, OfEqualEnergiesTheFaster) {
  EXPECT_EQ(default_point(points_at({4, 3, 2}, 0), Seconds(2), {1, false}), 2);
}

TEST(DefaultPlan, AStragglersTimeIsWaitedForAnyway) {
  const auto point = [](double straggler_s, double slowdown) {
    return slowest_within(valley(), planned_time(valley(), Seconds(2), {slowdown, false}, Seconds(straggler_s)));
  };
  EXPECT_EQ(point(2.6, 0), 1) << "T' leaves room, past the time of least energy without a straggler";
  EXPECT_EQ(point(99, 0), 0) << "T*";
  EXPECT_EQ(point(2.1, 0), 3);
  EXPECT_EQ(point(2.1, 0.6), 2) << "tolerated, and cheaper than waiting";
  EXPECT_EQ(point(2.3, 0.6), 2) << "tolerated, and dearer";
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
  const Seconds t_max = planner::Realizer(dag).realize(all_maximum_clock(dag)).time;
  planner::PlannerOptions options;
  options.deadlines = 2;
  options.also = {1.002 * t_max};
  const Frontier frontier = planner::plan_exact(dag, options);
  EXPECT_LT(frontier.points.back().time, 0.995 * t_max);
  EXPECT_GT(frontier.points[default_point(frontier, t_max)].time, 0.998 * t_max);
  EXPECT_GT(frontier.points[default_point(frontier, t_max, {0.002, false})].time, 1.0005 * t_max);
}

}  // namespace
}  // namespace perseus::model
