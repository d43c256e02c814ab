// Planning again with the switch latency that ranks measure, and the first plan that waits for it.
#include "server/plans/latency_replans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::plans {
namespace {

class LatencyReplansTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  LatencyReplansTest() { base.create("job"); }
  void measure(double switch_latency_s) {
    for (const int rank : {0, 1}) {
      jobs::RankMeasured measured;
      measured.rank = rank;
      measured.switch_latency_s = switch_latency_s;
      base.append("job", {measured});
    }
  }
  void go_on() {
    latencies->go_on(live());
    base.settle();
  }
  const double rounded_ = profiles::rounded_latency(Seconds(0.0123)).value();  // two digits, up
  std::optional<double> planned_with_s() { return job().planned_with.at(job().input_of[0]).switch_latency_s; }
};

TEST_F(LatencyReplansTest, TheInputIsCompletedWithTheMeasuredLatencyOnce) {
  plan();
  const std::string before = job().input_of[0];
  go_on();
  EXPECT_EQ(job().input_of[0], before) << "no rank has measured anything";
  measure(0.0123);
  latencies->go_on(live());
  latencies->go_on(live());
  base.settle();
  EXPECT_NE(job().input_of[0], before);
  EXPECT_EQ(planned_with_s(), rounded_);
  const std::int64_t committed = live().committed;
  go_on();
  EXPECT_EQ(live().committed, committed);
}

TEST_F(LatencyReplansTest, ALatencyThatTheProfileOrTheJobGivesStays) {
  plan(testing::two_stages_input(Seconds(0.05), true));
  measure(0.0123);
  go_on();
  EXPECT_EQ(planned_with_s(), 0.05);
}

TEST_F(LatencyReplansTest, NothingIsPlannedWhileRanksHaveYetToMeasure) {
  plan();
  measure(0.0123);
  live().job.without_latency = {1};
  live().job.joined_s = now_s();
  go_on();
  EXPECT_EQ(planned_with_s(), std::nullopt);
  base.clock().advance(options.latency_wait_s);
  go_on();
  EXPECT_EQ(planned_with_s(), rounded_);
}

TEST_F(LatencyReplansTest, AnInputThatCannotBeReadIsNotTriedAgainWithThatLatency) {
  plan();
  measure(0.0123);
  base.database().damaged.insert("input/" + job().input_of[0]);
  go_on();
  base.database().damaged.clear();
  go_on();
  EXPECT_EQ(planned_with_s(), std::nullopt);
  measure(0.1);
  go_on();
  EXPECT_EQ(planned_with_s(), 0.1) << "another latency is tried";
}

TEST_F(LatencyReplansTest, AFailureOfTheStoreIsRetried) {
  plan();
  measure(0.0123);
  base.database().failure = Error{ErrorCode::unavailable, "the disk is full"};
  go_on();
  EXPECT_EQ(live().retry_s, now_s() + live::kRetryAfter_s);
  EXPECT_FALSE(live().replan.under_way);
  base.database().failure.reset();
  go_on();
  EXPECT_EQ(planned_with_s(), rounded_);
}

TEST_F(LatencyReplansTest, AJobThatEndsMeanwhileIsNotChanged) {
  plan();
  measure(0.0123);
  latencies->go_on(live());
  base.append("job", {jobs::JobFinished{}});
  EXPECT_EQ(planned_with_s(), std::nullopt);
}

TEST_F(LatencyReplansTest, TheFirstPlanIsReleasedOnceWhenNoOtherWillFollow) {
  plan();
  int released = 0;
  base.hooks.on_shown = [&](live::LiveJob&) { ++released; };
  measure(0.0123);
  EXPECT_TRUE(latencies->first_plan_waits(live(), now_s()));
  latencies->release_first_plan(live());
  EXPECT_EQ(released, 0) << "no rank has requested it";
  live().replan.plan_held_back = true;
  latencies->release_first_plan(live());
  EXPECT_EQ(released, 0);
  go_on();
  EXPECT_FALSE(latencies->first_plan_waits(live(), now_s()));
  latencies->release_first_plan(live());
  latencies->release_first_plan(live());
  EXPECT_EQ(released, 1);
}

TEST_F(LatencyReplansTest, AFailedCompletionReleasesThePlanToo) {
  plan();
  int released = 0;
  base.hooks.on_shown = [&](live::LiveJob&) { ++released; };
  measure(0.0123);
  live().replan.plan_held_back = true;
  base.database().put_blob("input/" + job().input_of[0], "{}");
  go_on();
  EXPECT_EQ(released, 1);
}

}  // namespace
}  // namespace perseus::plans
