// Events that follow from a job and the time.
#include "server/plans/follow_ups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::plans {
namespace {

using testing::JobsInMemory;

class FollowUpsTest : public ::testing::Test {
 protected:
  FollowUpsTest() {
    base_.create("job");
    base_.live("job").last_seen_s = now_s();
  }
  [[nodiscard]] double now_s() { return base_.clock().now_s(); }
  live::LiveJob& live() { return base_.live("job"); }

  PlanningOptions options_;
  JobsInMemory base_;
  FollowUps follow_ups_{options_, base_.clock().now_s()};
};

jobs::RankRegistered rank_of_a_process(int rank) {
  jobs::RankRegistered registered;
  registered.rank = registered.pp_rank = rank;
  registered.epoch = 7;
  return registered;
}

TEST_F(FollowUpsTest, AJobWhoseRanksAllWaitIsLookedAtOnceOneOfThemDoesNot) {
  base_.append("job", {rank_of_a_process(0), rank_of_a_process(1)});
  const double began_s = now_s();
  for (const int rank : {0, 1}) {
    live().calls.record(rank, began_s);
    live().calls.waiters[rank].rank = rank;
  }
  EXPECT_LE(follow_ups_.due_s(live(), began_s), began_s) << "nobody has looked yet";
  EXPECT_EQ(follow_ups_.next(live(), began_s), std::nullopt);
  EXPECT_EQ(follow_ups_.due_s(live(), began_s), live().job.active_s + options_.idle_expiry_s / 8) << "not idle";
  live().calls.waiters.erase(1);
  live().calls.heard(1, began_s + 1000);
  EXPECT_EQ(follow_ups_.due_s(live(), began_s + 1000), began_s + 1060);
  EXPECT_EQ(follow_ups_.next(live(), began_s + 1059), std::nullopt);
  EXPECT_EQ(follow_ups_.due_s(live(), began_s + 1059), began_s + 1074) << "a look costs all ranks";
  EXPECT_EQ(follow_ups_.next(live(), began_s + 1074), jobs::EventBody(jobs::JobSilent{began_s + 1000, 0, {1}}));
}

}  // namespace
}  // namespace perseus::plans
