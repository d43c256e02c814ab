#include "server/live/rank_calls.h"

#include <gtest/gtest.h>

namespace perseus::live {
namespace {

TEST(RankCalls, TheLastCallOfEachRankIsKnown) {
  RankCalls calls;
  EXPECT_EQ(calls.last_s(0), std::nullopt);
  calls.record(2, 10);
  EXPECT_EQ(calls.last_s(2), 10);
  EXPECT_EQ(calls.last_s(1), std::nullopt) << "below a rank that has called";
  EXPECT_EQ(calls.last_s(3), std::nullopt);
  calls.record(0, 11);
  calls.record(2, 12);
  EXPECT_EQ(calls.last_s(0), 11);
  EXPECT_EQ(calls.last_s(2), 12);
}

TEST(RankCalls, ARankWaitsWhileOneOfItsWaitsIsThere) {
  RankCalls calls;
  Waiter waiter;
  waiter.rank = 3;
  calls.waiters.emplace(1, waiter);
  calls.waiters.emplace(2, waiter);
  EXPECT_TRUE(calls.waits(3));
  EXPECT_FALSE(calls.waits(2));
  calls.waiters.erase(1);
  EXPECT_TRUE(calls.waits(3));
  calls.waiters.erase(2);
  EXPECT_FALSE(calls.waits(3));
}

TEST(RankCalls, ARankHasEndedIfItsHostClosedItsWaitOrItOnlyRegistered) {
  RankCalls calls;
  calls.registered(0, 10);
  EXPECT_EQ(calls.ended(), 1) << "it has not asked for its plan";
  calls.record(0, 11);
  EXPECT_EQ(calls.ended(), 0);
  calls.closed(0);
  EXPECT_EQ(calls.ended(), 1);
  calls.record(0, 12);
  EXPECT_EQ(calls.ended(), 0) << "it has called again";
  calls.waiters.emplace(1, Waiter{});
  calls.closed(0);
  EXPECT_EQ(calls.ended(), 0) << "an earlier connection of a rank that waits";
  calls.waiters.clear();
  calls.closed(0);
  calls.forget(0);
  EXPECT_EQ(calls.ended(), 0) << "another process holds the rank";
  calls.closed(7);
  EXPECT_EQ(calls.ended(), 0) << "a rank that never called here";
}

}  // namespace
}  // namespace perseus::live
