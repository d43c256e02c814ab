// Requests for frontiers, and their withdrawal.
#include "server/service/job_frontiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::service {
namespace {

using testing::JobsInMemory;

class JobFrontiersTest : public ::testing::Test {
 protected:
  JobFrontiersTest() {
    base_.create("job");
    base_.append(
        "job", {jobs::ProfileKnown{"input", "uploaded", {}, "1f1b", 2, ""}, jobs::CharacterizationStarted{{"input"}}});
  }

  JobsInMemory base_;
  std::shared_ptr<Characterizations> characterizations_ = std::make_shared<Characterizations>(
      ServiceOptions{}, base_.access_to_store(), base_.clock(), static_cast<Executor&>(base_));
  std::shared_ptr<JobFrontiers> frontiers_ =
      std::make_shared<JobFrontiers>(base_.jobs(), base_.clock(), *characterizations_);
};

TEST_F(JobFrontiersTest, AJobRequestsEachFrontierOnce) {
  frontiers_->want(base_.live("job"));
  frontiers_->want(base_.live("job"));
  EXPECT_EQ(characterizations_->running(), 1);
  EXPECT_EQ(base_.live("job").wanted.size(), 1U);
}

TEST_F(JobFrontiersTest, PlanningStopsWhenTheJobIsRemovedOrHasEnded) {
  for (const bool removed : {true, false}) {
    LiveJob& live = base_.live("job");
    frontiers_->want(live);
    if (removed) {
      frontiers_->job_removed(live);
    } else {
      base_.jobs().execute("job", {[](const jobs::Job&, double) {
                                     return Result<Decision>(Decision{{jobs::JobFinished{}}, {}});
                                   },
                                   {}});
      frontiers_->want(live);
    }
    EXPECT_TRUE(live.wanted.empty());
    base_.settle();
    EXPECT_EQ(characterizations_->running(), 0);
    EXPECT_EQ(characterizations_->failed(), 0) << "it did not look for the missing input";
  }
}

TEST_F(JobFrontiersTest, AMissingInputFailsTheCharacterization) {
  int arrived = 0;
  frontiers_->arrived = [&](LiveJob&) { ++arrived; };
  frontiers_->want(base_.live("job"));
  base_.settle();
  EXPECT_EQ(arrived, 1);
  EXPECT_TRUE(base_.live("job").job.failures.contains("input"));
}

}  // namespace
}  // namespace perseus::service
