// Requests for frontiers, and their withdrawal.
#include "server/plans/job_frontiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::plans {
namespace {

class JobFrontiersTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  JobFrontiersTest() {
    base.create("job");
    base.append("job",
                {jobs::ProfileKnown{"input", "uploaded", {}, "1f1b", 2, ""}, jobs::CharacterizationStarted{{"input"}}});
  }
};

TEST_F(JobFrontiersTest, AJobRequestsEachFrontierOnce) {
  frontiers->want(live());
  frontiers->want(live());
  EXPECT_EQ(characterizations->running(), 1);
  EXPECT_EQ(live().frontiers.requested().size(), 1U);
}

TEST_F(JobFrontiersTest, PlanningStopsWhenTheJobIsRemovedOrHasEnded) {
  for (const bool removed : {true, false}) {
    frontiers->want(live());
    if (removed) {
      frontiers->job_removed(live());
    } else {
      base.jobs().execute("job", {[](const jobs::Job&, double) {
                                    return Result<live::Decision>(live::Decision{{jobs::JobFinished{}}, {}});
                                  },
                                  {}});
      frontiers->want(live());
    }
    EXPECT_TRUE(live().frontiers.requested().empty());
    base.settle();
    EXPECT_EQ(characterizations->running(), 0);
    EXPECT_EQ(characterizations->failed(), 0) << "it did not look for the missing input";
  }
}

TEST_F(JobFrontiersTest, WhatAFrontierMakesPossibleIsDecidedBeforeRanksSeeIt) {
  frontiers->want(live());
  bool followed = false;
  base.hooks.on_shown = [&](live::LiveJob&) { EXPECT_TRUE(followed); };
  while (characterizations->running() > 0 && base.hooks.times_shown == 0) {
    base.hooks.follow_up = nullptr;
    base.jobs().execute("job", {[](const jobs::Job&, double) {
                                  return Result<live::Decision>(live::Decision{{jobs::JobSeen{}}, {}});
                                },
                                {}});
    base.hooks.follow_up = [&](live::LiveJob&, double) -> std::optional<jobs::EventBody> {
      return std::exchange(followed, true) ? std::nullopt : std::optional<jobs::EventBody>(jobs::JobSeen{});
    };
    base.settle_one();
  }
  EXPECT_EQ(base.hooks.times_shown, 1);
}

TEST_F(JobFrontiersTest, AMissingInputFailsTheCharacterization) {
  int arrived = 0;
  base.hooks.on_shown = [&](live::LiveJob&) { ++arrived; };
  frontiers->want(live());
  base.settle();
  EXPECT_EQ(arrived, 1);
  EXPECT_TRUE(live().job.failures.contains("input"));
}

}  // namespace
}  // namespace perseus::plans
