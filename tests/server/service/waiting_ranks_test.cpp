// Waits for the next plan: answered by a version, by time, by a later process, by removal, or by the server's stop.
#include "server/service/waiting_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::service {
namespace {

using testing::Answer;
using testing::JobsInMemory;

class WaitingRanksTest : public ::testing::Test {
 protected:
  WaitingRanksTest() { base_.create("job"); }
  Answer<jobs::PlanAnswer> wait(int rank, std::optional<double> max_wait_s = std::nullopt, std::int64_t epoch = 0) {
    Answer<jobs::PlanAnswer> answer;
    last_ =
        waiting_.wait({.job = "job", .rank = rank, .iteration = std::nullopt, .max_wait_s = max_wait_s, .epoch = epoch},
                      answer.take());
    base_.settle();
    return answer;
  }

  ServiceOptions options_;
  JobsInMemory base_;
  JobAccess access_{base_.jobs(), base_.clock()};
  std::shared_ptr<LatencyReplans> latencies_ = std::make_shared<LatencyReplans>(
      options_, base_.jobs(), base_.access_to_store(), base_.clock(), static_cast<Executor&>(base_));
  std::shared_ptr<RankPlans> plans_ =
      std::make_shared<RankPlans>(base_.jobs(), base_.access_to_store(), base_.clock(), *latencies_);
  WaitingRanks waiting_{options_, base_.jobs(), base_.clock(), access_, *plans_};
  jobs::WaitId last_ = 0;
};

TEST_F(WaitingRanksTest, AWaitEndsAtItsTimeLimitWithoutASchedule) {
  const auto answer = wait(0, 5);
  EXPECT_FALSE(answer.given());
  ASSERT_EQ(waiting_.next_wake(), base_.clock().now_s() + 5);
  base_.clock().advance(4);
  waiting_.tick(base_.clock().now_s());
  EXPECT_FALSE(answer.given());
  base_.clock().advance(1);
  waiting_.tick(base_.clock().now_s());
  ASSERT_TRUE(answer.given() && answer->ok());
  EXPECT_EQ((*answer)->schedule, nullptr);
  EXPECT_EQ(waiting_.size(), 0U);
}

TEST_F(WaitingRanksTest, ALaterProcessEndsItsPredecessorsWaitAndNoOther) {
  const auto earlier = wait(0), other = wait(1);
  jobs::RankRegistered again;
  again.epoch = 7;
  again.accelerator = "GPU-0";
  base_.append("job", {again});
  waiting_.end_earlier(base_.live("job"), 0);
  EXPECT_FALSE(earlier.given()) << "a process that names no epoch is not checked";
  const auto named = wait(0, std::nullopt, 7);
  again.epoch = 9;
  base_.append("job", {again});
  waiting_.end_earlier(base_.live("job"), 0);
  ASSERT_TRUE(named.given());
  EXPECT_EQ(named->error().code, ErrorCode::conflict);
  EXPECT_FALSE(other.given());
}

TEST_F(WaitingRanksTest, ACanceledWaitIsNotAnswered) {
  const auto answer = wait(0);
  waiting_.cancel(last_);
  waiting_.stop();
  EXPECT_FALSE(answer.given());
}

TEST_F(WaitingRanksTest, TheServersStopEndsEveryWaitAndEveryLaterOne) {
  const auto parked = wait(0);
  waiting_.stop();
  ASSERT_TRUE(parked.given());
  EXPECT_EQ(parked->error().code, ErrorCode::unavailable);
  EXPECT_EQ(wait(1)->error().code, ErrorCode::unavailable);
  EXPECT_EQ(waiting_.size(), 0U);
}

TEST_F(WaitingRanksTest, TheJobsRemovalEndsItsWaits) {
  const auto answer = wait(0);
  waiting_.job_removed(base_.live("job"));
  ASSERT_TRUE(answer.given());
  EXPECT_EQ(answer->error().code, ErrorCode::not_found);
}

TEST_F(WaitingRanksTest, AnUnknownRankIsAnErrorAfterAskingTheStore) {
  const auto answer = wait(5);
  ASSERT_TRUE(answer.given());
  EXPECT_EQ(answer->error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace perseus::service
