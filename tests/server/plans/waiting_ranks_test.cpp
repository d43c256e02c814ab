// Waits for the next plan that end without one: the job is removed, or this server may no longer write.
#include "server/plans/waiting_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::plans {
namespace {

using testing::Answer;

class WaitingRanksTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  WaitingRanksTest() { base.create("job"); }
  Answer<jobs::PlanAnswer> ask(std::optional<double> wait_s, std::int64_t have = 0) {
    Answer<jobs::PlanAnswer> answer;
    waiting.wait({.job = "job", .rank = 0, .have_version = have, .iteration = std::nullopt, .max_wait_s = wait_s},
                 answer.take());
    base.settle();
    return answer;
  }
};

/// Another server may have taken over: under a power budget, no answer may make the plan's lease longer.
TEST_F(WaitingRanksTest, WithoutTheRightToWriteNoLeaseIsRenewed) {
  sure = false;
  EXPECT_TRUE(ask(0)->ok()) << "no budget: the answer renews nothing";
  live().job.plan.emplace().budget.emplace().lease_s = 30;
  ASSERT_FALSE(ask(0)->ok());
  EXPECT_EQ(ask(0)->error().code, ErrorCode::unavailable);
  EXPECT_FALSE(ask(5, 7)->ok()) << "a plan renews it, too";
  sure = true;
  const auto parked = ask(5);
  EXPECT_FALSE(parked.given());
  sure = false;
  base.clock().advance(5);
  due.perform(now_s());
  EXPECT_FALSE(parked->ok());
}

TEST_F(WaitingRanksTest, TheJobsRemovalEndsItsWaits) {
  const auto answer = ask(std::nullopt);
  waiting.job_removed(live());
  ASSERT_TRUE(answer.given());
  EXPECT_EQ(answer->error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace perseus::plans
