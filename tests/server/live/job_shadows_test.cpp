#include "server/live/job_shadows.h"

#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::live {
namespace {

/// A planned job; when its time comes, point 1 is due.
class JobShadowsTest : public ::testing::Test {
 protected:
  JobShadowsTest() {
    parts_.base.create("job");
    parts_.plan();
    parts_.deploy(0);
    hooks_.follow_up = [this](LiveJob& live, double /*now_s*/) -> std::optional<jobs::EventBody> {
      if (!due_ || live.job.plan->of(0).point == 1) return std::nullopt;
      return parts_.deployed(1);
    };
  }
  LiveJob& live() { return parts_.live(); }
  int answered_point() { return live().shown.to_clients()->plan->of(0).point; }

  testing::ServiceParts parts_;
  testing::TestHooks hooks_;
  JobIndex index_{hooks_};
  work::Due alarms_;
  JobWakes wakes_{hooks_, index_, alarms_};
  JobShadows shadows_{hooks_, wakes_, parts_.base.clock()};
  bool due_ = false;
};

TEST_F(JobShadowsTest, DueEventsReachRanksAndNotTheJob) {
  shadows_.go_on(live());
  EXPECT_TRUE(live().shown.is_late());
  EXPECT_EQ(answered_point(), 0);
  due_ = true;
  parts_.base.clock().advance(1);
  shadows_.go_on(live());
  EXPECT_EQ(answered_point(), 1);
  EXPECT_TRUE(is_provisional(live().shown.version()));
  EXPECT_EQ(hooks_.times_shown, 1);
  EXPECT_EQ(live().job.plan->of(0).point, 0) << "nothing of it is durable";
}

TEST_F(JobShadowsTest, GoesOnEverySecond) {
  shadows_.go_on(live());
  EXPECT_EQ(alarms_.next(), parts_.now_s() + 1);
}

TEST_F(JobShadowsTest, ThePlanKeepsItsVersionUntilItIsAnotherOne) {
  due_ = true;
  shadows_.go_on(live());
  const std::int64_t version = live().shown.version();
  EXPECT_TRUE(live().shown.end());
  EXPECT_EQ(live().shown.to_clients(), nullptr);
  shadows_.go_on(live());
  EXPECT_EQ(live().shown.version(), version);
  live().shown.end();
  parts_.base.append("job", {parts_.deployed(-1)});
  live().shown.committed_plan = 1;  // it is not durable
  due_ = false;
  shadows_.go_on(live());
  EXPECT_EQ(live().shown.version(), version + 1);
}

}  // namespace
}  // namespace perseus::live
