#include <gtest/gtest.h>

#include "io/report/summary.h"
#include "io/report/timeline.h"
#include "tests/support/report_sample.h"

namespace perseus::report {
namespace {

model::FrontierPoint point(double time, double effective) { return {Seconds(time), {}, Joules(effective), {}, {}}; }

TEST(PointFor, IsTheSlowestNoSlowerThanTheDeadline) {
  model::Frontier f;
  f.points = {point(4, 10), point(3, 20), point(2, 30)};
  EXPECT_EQ(point_for(f, Seconds(9)), 0);
  EXPECT_EQ(point_for(f, Seconds(4)), 0);
  EXPECT_EQ(point_for(f, Seconds(3.999)), 1);
  EXPECT_EQ(point_for(f, Seconds(3)), 1);
  EXPECT_EQ(point_for(f, Seconds(2)), 2);
  EXPECT_EQ(point_for(f, Seconds(1)), 2);  // no point is that fast: the fastest
}

/// One computation, two clocks: 1 s at 100 J and 3 s at 120 J, 20 W while waiting.
struct TwoPoints {
  model::ComputationDag dag;
  model::Frontier frontier;
  TwoPoints() {
    dag.types = {
        {0,
         "forward",
         {{Megahertz(2), Seconds(1), Joules(100), {}, {}, 1}, {Megahertz(1), Seconds(3), Joules(120), {}, {}, 1}}}};
    dag.computations = {{0, 0, 0}};
    dag.rank_order = {{0}};
    dag.accelerators = {1};
    dag.blocking_power = Watts(20);
    frontier.points = {{Seconds(3), Joules(120), Joules(60), Joules(120), {1}},
                       {Seconds(1), Joules(100), Joules(80), Joules(100), {0}}};
    frontier.bound.vertices = {{Seconds(1), Joules(80)}, {Seconds(3), Joules(60)}};
  }
};

TEST(Summary, GapGrowsBetweenPointsAndItsMeanIsTakenOverT) {
  const TwoPoints two;
  const ReportSummary s = summarize(two.dag, two.frontier, {});
  // Just below T = 3 the fast point still applies: 80 against a bound of 60, over 60 + 20 * 3.
  EXPECT_NEAR(s.gap_max_pct, 100.0 * 20 / 120, 1e-9);
  // gap(T) = 10 (T - 1) / (90 - 10 T + 20 T), averaged over 1..3.
  double mean = 0;
  constexpr int steps = 100000;
  for (int k = 0; k < steps; ++k) {
    const double t = 1 + 2 * (k + 0.5) / steps;
    mean += 100.0 * 10 * (t - 1) / (90 + 10 * t) / steps;
  }
  EXPECT_NEAR(s.gap_mean_pct, mean, 0.01 * mean);
}

TEST(Summary, ReferencePointsAndStraggler) {
  const TwoPoints two;
  const ReportSummary s = summarize(two.dag, two.frontier, Seconds(5));
  EXPECT_DOUBLE_EQ(s.all_max.time.value(), 1);
  EXPECT_DOUBLE_EQ(s.all_max.energy.value(), 100);
  EXPECT_DOUBLE_EQ(s.min_energy.time.value(), 3);
  EXPECT_DOUBLE_EQ(s.min_energy.effective_energy.value(), 60);
  EXPECT_DOUBLE_EQ(s.saving_pct, 0);
  ASSERT_TRUE(s.straggler);
  EXPECT_EQ(s.straggler->point, 0);
  EXPECT_DOUBLE_EQ(s.straggler->energy.value(), 60 + 20 * 5);
  EXPECT_DOUBLE_EQ(s.straggler->all_max_energy.value(), 80 + 20 * 5);
  EXPECT_NEAR(s.straggler->saving_pct, 100.0 * 20 / 180, 1e-9);
}

TEST(Summary, AStragglerFasterThanAnyPlanChangesNothing) {
  const TwoPoints two;
  const ReportSummary s = summarize(two.dag, two.frontier, Seconds(0.5));
  EXPECT_EQ(s.straggler->point, 1);
  EXPECT_DOUBLE_EQ(s.straggler->energy.value(), 100);  // at its own time, which exceeds T'
}

TEST(Summary, OnePointIsAFrontierToo) {
  TwoPoints two;
  two.frontier.points.erase(two.frontier.points.begin());
  two.frontier.bound.vertices.pop_back();
  const ReportSummary s = summarize(two.dag, two.frontier, {});
  EXPECT_DOUBLE_EQ(s.gap_mean_pct, 0);
  EXPECT_DOUBLE_EQ(s.gap_max_pct, 0);
}

}  // namespace
}  // namespace perseus::report
