// Waits for the next plan: answered by a version, by time, by a later process, by removal, or by the server's stop.
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
  Answer<jobs::PlanAnswer> wait(int rank, std::optional<double> max_wait_s = std::nullopt, std::int64_t epoch = 0) {
    Answer<jobs::PlanAnswer> answer;
    last_ =
        waiting.wait({.job = "job", .rank = rank, .iteration = std::nullopt, .max_wait_s = max_wait_s, .epoch = epoch},
                     answer.take());
    base.settle();
    return answer;
  }

  jobs::WaitId last_ = 0;
};

TEST_F(WaitingRanksTest, AWaitEndsAtItsTimeLimitWithoutASchedule) {
  const auto answer = wait(0, 5);
  EXPECT_FALSE(answer.given());
  ASSERT_EQ(due.next(), now_s() + 5);
  base.clock().advance(4);
  due.perform(now_s());
  EXPECT_FALSE(answer.given());
  base.clock().advance(1);
  due.perform(now_s());
  ASSERT_TRUE(answer.given() && answer->ok());
  EXPECT_EQ((*answer)->schedule, nullptr);
  EXPECT_EQ(waiting.size(), 0U);
}

TEST_F(WaitingRanksTest, TheEarliestTimeLimitIsNext) {
  const auto first = wait(0, 5), later = wait(1, 9);
  EXPECT_EQ(due.next(), now_s() + 5);
  const auto earlier = wait(1, 2);
  EXPECT_EQ(due.next(), now_s() + 2);
}

TEST_F(WaitingRanksTest, ALaterProcessEndsItsPredecessorsWaitAndNoOther) {
  const auto earlier = wait(0), other = wait(1);
  jobs::RankRegistered again;
  again.epoch = 7;
  again.accelerator = "GPU-0";
  base.append("job", {again});
  waiting.end_earlier(live(), 0);
  EXPECT_FALSE(earlier.given()) << "a process that names no epoch is not checked";
  const auto named = wait(0, std::nullopt, 7);
  again.epoch = 9;
  base.append("job", {again});
  waiting.end_earlier(live(), 0);
  ASSERT_TRUE(named.given());
  EXPECT_EQ(named->error().code, ErrorCode::conflict);
  EXPECT_FALSE(other.given());
}

/// Another server may have taken over: under a power budget, no answer may make the plan's lease longer.
TEST_F(WaitingRanksTest, WithoutTheRightToWriteNoLeaseIsRenewed) {
  bool sure = true;
  options.may_renew = [&] { return sure; };
  const auto ask = [&](double wait_s, std::int64_t have = 0) {
    Answer<jobs::PlanAnswer> answer;
    waiting.wait({.job = "job", .rank = 0, .have_version = have, .iteration = std::nullopt, .max_wait_s = wait_s},
                 answer.take());
    base.settle();
    return answer;
  };
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

TEST_F(WaitingRanksTest, ACanceledWaitIsNotAnswered) {
  const auto answer = wait(0);
  waiting.cancel(last_);
  waiting.stop();
  EXPECT_FALSE(answer.given());
}

TEST_F(WaitingRanksTest, TheServersStopEndsEveryWaitAndEveryLaterOne) {
  const auto parked = wait(0);
  waiting.stop();
  ASSERT_TRUE(parked.given());
  EXPECT_EQ(parked->error().code, ErrorCode::unavailable);
  EXPECT_EQ(wait(1)->error().code, ErrorCode::unavailable);
  EXPECT_EQ(waiting.size(), 0U);
}

TEST_F(WaitingRanksTest, TheJobsRemovalEndsItsWaits) {
  const auto answer = wait(0);
  waiting.job_removed(live());
  ASSERT_TRUE(answer.given());
  EXPECT_EQ(answer->error().code, ErrorCode::not_found);
}

TEST_F(WaitingRanksTest, AnUnknownRankIsAnErrorAfterAStoreRead) {
  const auto answer = wait(5);
  ASSERT_TRUE(answer.given());
  EXPECT_EQ(answer->error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace perseus::plans
