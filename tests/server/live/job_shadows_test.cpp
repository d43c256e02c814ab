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
  JobIndex index_;
  work::Due alarms_;
  JobWakes wakes_{hooks_, index_, alarms_};
  JobShadows shadows_{hooks_, wakes_, parts_.base.clock()};
  bool due_ = false;
};

TEST_F(JobShadowsTest, DueEventsReachRanksAndNotTheJob) {
  shadows_.begin(live());
  EXPECT_TRUE(live().store_is_late());
  EXPECT_EQ(answered_point(), 0);
  due_ = true;
  parts_.base.clock().advance(1);
  shadows_.touch(live());
  EXPECT_EQ(answered_point(), 1);
  EXPECT_TRUE(is_provisional(live().shown.version()));
  EXPECT_EQ(hooks_.times_shown, 1);
  EXPECT_EQ(live().job.plan->of(0).point, 0) << "nothing of it is durable";
}

TEST_F(JobShadowsTest, IsCastAgainEverySecond) {
  shadows_.begin(live());
  EXPECT_EQ(alarms_.next(), parts_.now_s() + 1);
}

TEST_F(JobShadowsTest, EndsOnceEverythingIsDurable) {
  due_ = true;
  shadows_.begin(live());
  hooks_.times_shown = 0;
  shadows_.end(live());
  EXPECT_EQ(live().shown.shadow, nullptr);
  EXPECT_EQ(hooks_.times_shown, 1);
}

}  // namespace
}  // namespace perseus::live
