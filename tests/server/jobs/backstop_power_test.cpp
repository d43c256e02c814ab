// The correction of a budget, in steps: what costs a version of the plan, and what does not.
#include "server/jobs/backstop_power.h"

#include <gtest/gtest.h>

#include "server/jobs/deployment.h"

namespace perseus::jobs {
namespace {

TEST(BackstopStep, IsTheNextOneAboveTheCorrection) {
  EXPECT_EQ(backstop_step(0.8, 0), 0);
  EXPECT_EQ(backstop_step(1, 0), 0);
  EXPECT_EQ(backstop_step(1.001, 0), 5);
  EXPECT_EQ(backstop_step(1.05, 0), 5);
  EXPECT_EQ(backstop_step(1.051, 0), 10);
  EXPECT_EQ(backstop_step(1.25, 0), 25);
}

TEST(BackstopStep, FallsOnlyIfTheCorrectionIsClearlyBelow) {
  EXPECT_EQ(backstop_step(1.051, 5), 10) << "it rises at once";
  EXPECT_EQ(backstop_step(1.045, 10), 10);
  EXPECT_EQ(backstop_step(1.039, 10), 5);
  EXPECT_EQ(backstop_step(1, 5), 5);
  EXPECT_EQ(backstop_step(0.98, 5), 0);
  EXPECT_EQ(backstop_step(1, 25), 5);
}

TEST(BackstopStep, OnlyAnotherStepIsAnotherPlan) {
  Job job;
  job.spec.degrees.dp = 1;
  job.input_of = {""};
  job.unprofiled = true;
  job.grant.emplace();
  job.grant->granted_w = 300;
  const auto desired = [&](double correction) {
    job.grant->correction = correction;
    return desired_deployment(job, {}, 0, 0).value();
  };
  job.plan = desired(1);
  EXPECT_EQ(job.plan->budget->draws_more_pct, 0);
  EXPECT_FALSE(differs(desired(0.9), job.plan));
  EXPECT_TRUE(differs(desired(1.03), job.plan));
  job.plan = desired(1.03);
  EXPECT_EQ(job.plan->budget->draws_more_pct, 5);
  EXPECT_FALSE(differs(desired(1.045), job.plan));
  EXPECT_FALSE(differs(desired(1.01), job.plan));
  EXPECT_TRUE(differs(desired(1.06), job.plan));
  job.grant.reset();
}

}  // namespace
}  // namespace perseus::jobs
