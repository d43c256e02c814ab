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

}  // namespace
}  // namespace perseus::plans
