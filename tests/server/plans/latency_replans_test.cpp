// Planning again with the switch latency that ranks measure.
#include "server/plans/latency_replans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

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
  /// A rank waits for the first plan, which is held back for the latency that it has measured.
  testing::Answer<jobs::PlanAnswer> ask_for_first_plan() {
    base.hooks.on_shown = [this](live::LiveJob& live) { waiting.answer(live); };
    plan();
    deploy(0);
    measure(0.0123);
    testing::Answer<jobs::PlanAnswer> answer;
    jobs::WaitForPlan asked;
    asked.job = "job";
    waiting.wait(std::move(asked), answer.take());
    EXPECT_FALSE(answer.given());
    return answer;
  }
  std::optional<double> planned_with_s() { return job().planned_with.at(job().input_of[0]).switch_latency_s; }
};

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

TEST_F(LatencyReplansTest, AnInputThatCannotBeReadHoldsNoFirstPlanBack) {
  const auto answer = ask_for_first_plan();
  base.database().damaged.insert("input/" + job().input_of[0]);
  go_on();
  EXPECT_TRUE(answer.given());
}

TEST_F(LatencyReplansTest, AnInputThatCannotBeCompletedHoldsNoFirstPlanBack) {
  const auto answer = ask_for_first_plan();
  base.database().put_blob("input/" + job().input_of[0], "of a later version");
  go_on();
  EXPECT_TRUE(answer.given());
}

}  // namespace
}  // namespace perseus::plans
