// What a job counts as while the iteration under way began without the period that its ranks hold.
#include <gtest/gtest.h>

#include "server/jobs/job.h"
#include "server/jobs/power_budget.h"

namespace perseus::jobs {
namespace {

TEST(HeldVersionsTest, APeriodThatFollowsAnotherWithinAnIterationKeepsWhatCountedBefore) {
  HeldVersions held;
  held.acts_from(10, 0, Watts(260));
  held.acts_from(11, 1, Watts(240));
  EXPECT_FALSE(held.acts(10.9));
  EXPECT_EQ(held.before(), Watts(260));
  EXPECT_TRUE(held.acts(11));
  held.acts_from(30, 20, Watts(240));  // the earlier ones are over
  EXPECT_EQ(held.before(), Watts(240));
}

TEST(HeldVersionsTest, AnUnknownPowerBeforeStaysUnknown) {
  HeldVersions held;
  held.acts_from(10, 0, std::nullopt);
  held.acts_from(11, 1, Watts(240));
  EXPECT_FALSE(held.before().has_value());
}

/// A job of two ranks whose versions 1, 2, ... have these budgets, all but the first paced.
Job paced_job(const std::vector<double>& watts) {
  Job job;
  job.id = "j";
  JobRegistered registration;
  registration.degrees = {2, 1, 1};
  EXPECT_TRUE(apply(job, {0, registration}).ok());
  for (const int rank : {0, 1}) {
    RankRegistered registered;
    registered.rank = registered.dp_rank = rank;
    registered.keeps_budgets = registered.paces = true;
    EXPECT_TRUE(apply(job, {0, registered}).ok());
  }
  for (const double budget_w : watts) {
    ++job.version;
    job.plan.emplace();
    job.plan->t_opt_s = 4;
    job.plan->budget = PowerBudget{budget_w, 10, 800, true, {}, budget_w < watts.front() ? 4.0 : 0.0};
    job.held.deployed(job.version, job.plan->budget);
    if (job.version == 1) note_held(job, 1, {}, 0);
  }
  return job;
}

TEST(HeldVersionsTest, RanksThatHoldAPeriodStillEndAnIterationWithoutIt) {
  Job job = paced_job({220, 200});
  note_held(job, 2, {}, 10);
  EXPECT_EQ(counted_power(job, 13.9), Watts(220));
  EXPECT_EQ(counted_power(job, 14), Watts(200));
}

TEST(HeldVersionsTest, SoDoRanksThatHoldItWhenTheNextPlanIsThere) {
  Job job = paced_job({220, 200, 199});
  note_held(job, 2, {0}, 9);
  note_held(job, 3, {1}, 10);
  EXPECT_EQ(counted_power(job, 13.9), Watts(220));
  EXPECT_EQ(counted_power(job, 14), Watts(200));
}

}  // namespace
}  // namespace perseus::jobs
