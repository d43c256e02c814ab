// The list of jobs as the index and the jobs in memory change.
#include "server/views/job_list_updater.h"

#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::views {
namespace {

using testing::JobsInMemory;

class JobListUpdaterTest : public ::testing::Test {
 protected:
  JobsInMemory base_;
  JobListUpdater list_{base_.jobs(), base_.clock()};
};

TEST_F(JobListUpdaterTest, WhileFrontiersAreReadARowKeepsTheSavingsOfTheIndex) {
  base_.create("job");
  base_.append("job",
               {jobs::ProfileKnown{"input", "uploaded", {}, "1f1b", 2, ""}, jobs::CharacterizationStarted{{"input"}},
                jobs::Characterized{"input", 3, 1, 2}, jobs::PlanDeployed{1, 0, {{"input", 0}}, {0}, {}, {}, ""}});
  base_.jobs().index()["job"].summary = R"({"ranks": 9, "saved_pct": 12.5, "saved_j": 35000})";
  const jobs::JobSummary summary = list_.summary_of(base_.live("job"));
  EXPECT_EQ(summary.saved_pct, 12.5);
  EXPECT_EQ(summary.saved, Joules(35000));
  EXPECT_EQ(summary.ranks, 2) << "what the job itself knows";
}

TEST_F(JobListUpdaterTest, PowerIsKnownOnceRanksReportIterations) {
  testing::ServiceParts parts;
  JobListUpdater list(parts.base.jobs(), parts.base.clock());
  parts.base.create("job");
  parts.plan();
  parts.deploy(0);
  EXPECT_EQ(list.summary_of(parts.live()).power, std::nullopt) << "no rank has reported an iteration";
  parts.base.append("job", {jobs::IterationsCounted{.iterations = 3, .last_iteration = 3}});
  const jobs::JobSummary estimated = list.summary_of(parts.live());
  ASSERT_TRUE(estimated.power && estimated.all_max_power);
  EXPECT_LT(*estimated.power, *estimated.all_max_power);
  EXPECT_FALSE(estimated.power_measured);
  EXPECT_EQ(estimated.planned_power, estimated.power);
  parts.base.append("job", {jobs::EnergyMeasured{1, 8, 800, 4}});
  const jobs::JobSummary plan_alone = list.summary_of(parts.live());
  EXPECT_EQ(plan_alone.power, Watts(200)) << "what is reported comes before the profile";
  EXPECT_TRUE(plan_alone.power_measured);
  EXPECT_NEAR(*plan_alone.all_max_power / *plan_alone.power, *estimated.all_max_power / *estimated.power, 1e-9);
  parts.base.append("job", {jobs::EnergyMeasured{0, 8, 900, 3}});
  const jobs::JobSummary measured = list.summary_of(parts.live());
  EXPECT_EQ(measured.power, Watts(200));
  EXPECT_EQ(measured.all_max_power, Watts(300));
  EXPECT_TRUE(measured.power_measured);
  EXPECT_EQ(measured.planned_power, estimated.power) << "the plan stays the same";
  parts.base.append("job", {jobs::JobFinished{}});
  EXPECT_EQ(list.summary_of(parts.live()).power, std::nullopt);
}

TEST_F(JobListUpdaterTest, ManyChangedRowsAreRebuiltBeforeARequest) {
  for (int i = 0; i < 128; ++i) {
    list_.update_if_many();
    EXPECT_EQ(base_.jobs().index().changed(), static_cast<std::size_t>(i)) << "few: they wait for a request";
    const std::string id = std::to_string(i);
    base_.jobs().index().emplace(id, {.job = id, .state = "finished", .name = ""});
  }
  list_.update_if_many();
  EXPECT_EQ(base_.jobs().index().changed(), 0U);
}

}  // namespace
}  // namespace perseus::views
