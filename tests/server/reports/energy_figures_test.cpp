#include "server/reports/energy_figures.h"

#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::reports {
namespace {

live::SequencedEvent counted(double all_max_j, double saved_j, bool measured) {
  jobs::IterationsCounted count;
  count.iterations = 10;
  count.all_max_energy_j = all_max_j;
  count.saved_j = saved_j;
  count.measured = measured;
  return {1, {0, count}};
}

TEST(EnergyCounters, SumMeasuredAndEstimatedIterationsApart) {
  EnergyCounters counters;
  counters.take({counted(100, 30, true), counted(100, 20, true), counted(50, 5, false)});
  EXPECT_EQ(counters.measured().iterations, 20);
  EXPECT_DOUBLE_EQ(counters.measured().used_j, 150);
  EXPECT_DOUBLE_EQ(counters.measured().saved_j, 50);
  EXPECT_EQ(counters.estimated().iterations, 10);
  EXPECT_DOUBLE_EQ(counters.estimated().saved_j, 5);
}

TEST(EnergyCounters, NeverGoBack) {
  EnergyCounters counters;
  counters.take({counted(100, 30, true)});
  counters.take({counted(100, -10, true)});
  EXPECT_DOUBLE_EQ(counters.measured().saved_j, 30);
  EXPECT_DOUBLE_EQ(counters.measured().wasted_j, 10);
  EXPECT_DOUBLE_EQ(counters.measured().used_j, 180);
}

TEST(EnergyCounters, CountDroppedPlans) {
  EnergyCounters counters;
  counters.take({{2, {0, jobs::PlanDropped{}}}});
  EXPECT_EQ(counters.plans_dropped(), 1);
}

TEST(JobFigures, OfAJobWithoutPlanOrReportsAreMissing) {
  testing::ServiceParts parts;
  parts.base.create("job");
  EXPECT_FALSE(job_figures(parts.live()));
  parts.plan();
  parts.deploy(0);
  EXPECT_FALSE(job_figures(parts.live())) << "no rank has reported";
  parts.base.append("job", {counted(100, 30, false).event.body});
  const auto figures = job_figures(parts.live());
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->job, "job");
  EXPECT_EQ(figures->point, 0);
  EXPECT_GE(figures->points, 1);
  EXPECT_GE(figures->planned_time, figures->all_max_time);
  EXPECT_EQ(figures->stragglers, 0);
  EXPECT_EQ(figures->saved_estimated, Joules(30));
  EXPECT_FALSE(figures->saved_measured) << "no iteration was measured";
  parts.base.append("job", {counted(100, -5, true).event.body});
  EXPECT_EQ(job_figures(parts.live())->saved_estimated, Joules(30));
  EXPECT_EQ(job_figures(parts.live())->saved_measured, Joules(-5));
}

}  // namespace
}  // namespace perseus::reports
