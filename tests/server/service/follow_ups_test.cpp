// Events that follow from a job and the time.
#include "server/service/follow_ups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::service {
namespace {

using testing::JobsInMemory;

class FollowUpsTest : public ::testing::Test {
 protected:
  FollowUpsTest() {
    base_.create("job");
    base_.live("job").last_seen_s = now_s();
  }
  [[nodiscard]] double now_s() { return base_.clock().now_s(); }
  LiveJob& live() { return base_.live("job"); }

  ServiceOptions options_;
  JobsInMemory base_;
  FollowUps follow_ups_{options_, base_.clock().now_s()};
};

TEST_F(FollowUpsTest, NothingFollowsFromAJobWithoutAProfile) {
  EXPECT_EQ(follow_ups_.next(live(), now_s()), std::nullopt);
  EXPECT_EQ(follow_ups_.next_wake(live(), now_s()), now_s() + options_.idle_expiry_s);
}

TEST_F(FollowUpsTest, ANoticeTakesEffectAtItsTimeAndNotBefore) {
  const double effective_s = now_s() + 30;
  base_.append("job", {jobs::StragglerNoticed{"s1", {}, 0, 1.5, effective_s}});
  EXPECT_EQ(follow_ups_.next_wake(live(), now_s()), effective_s);
  EXPECT_EQ(follow_ups_.next(live(), effective_s - 1), std::nullopt);
  EXPECT_EQ(follow_ups_.next(live(), effective_s), jobs::EventBody(jobs::StragglerTookEffect{"s1"}));
}

TEST_F(FollowUpsTest, AProfileIsCharacterizedOnce) {
  base_.append("job", {jobs::ProfileKnown{"input", "uploaded", {}, "1f1b", 2, ""}});
  EXPECT_EQ(follow_ups_.next(live(), now_s()), jobs::EventBody(jobs::CharacterizationStarted{{"input"}}));
  base_.append("job", {jobs::CharacterizationStarted{{"input"}}});
  EXPECT_EQ(follow_ups_.next(live(), now_s()), std::nullopt);
  EXPECT_EQ(follow_ups_.next_wake(live(), now_s()), now_s() + options_.lease_s) << "a restarted server continues";
}

TEST_F(FollowUpsTest, AJobWithoutRequestsExpires) {
  const double over_s = now_s() + options_.idle_expiry_s;
  EXPECT_EQ(follow_ups_.next(live(), over_s), jobs::EventBody(jobs::JobExpired{}));
  live().last_seen_s = over_s - 1;  // the log records from time to time that it is not idle
  EXPECT_EQ(follow_ups_.next(live(), over_s), jobs::EventBody(jobs::JobSeen{}));
}

}  // namespace
}  // namespace perseus::service
