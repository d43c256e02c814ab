#include "server/live/live_job.h"

#include <gtest/gtest.h>

namespace perseus::live {
namespace {

/// A job of three ranks; rank 1 is registered.
class LiveJobTest : public ::testing::Test {
 protected:
  LiveJobTest() {
    live_.job.id = "in memory";
    live_.job.ranks.resize(3);
    live_.job.ranks[1] = jobs::Rank{};
  }

  LiveJob live_;
};

TEST_F(LiveJobTest, HasTheRanksThatAreRegistered) {
  EXPECT_TRUE(live_.has_rank(1));
  for (const int rank : {-1, 0, 2, 3}) { EXPECT_FALSE(live_.has_rank(rank)) << rank; }
}

TEST_F(LiveJobTest, KnowsDurablePlansAndThoseFromBeforeTheyWereDurable) {
  live_.shown.committed_plan = 2;
  live_.job.version = 3;  // being written
  EXPECT_TRUE(live_.knows(1, 0));
  EXPECT_TRUE(live_.knows(1, 2));
  EXPECT_FALSE(live_.knows(1, 3)) << "perhaps another server's plan: the store is to be read";
  EXPECT_TRUE(live_.knows(1, kProvisional + 7));
  EXPECT_FALSE(live_.knows(0, 2)) << "no such rank";
}

TEST_F(LiveJobTest, NoPlanIsFollowedUntilOneIsHandedOutOrTheLogCountsIterations) {
  EXPECT_TRUE(live_.no_plan_followed());
  live_.replan.plan_handed_out = true;
  EXPECT_FALSE(live_.no_plan_followed());
  live_.replan.plan_handed_out = false;
  live_.job.counted_to = 0;
  EXPECT_FALSE(live_.no_plan_followed());
  live_.job.counted_to = -1;
  live_.job.total.iterations = 1;
  EXPECT_FALSE(live_.no_plan_followed());
}

TEST_F(LiveJobTest, TheShownJobReplacesTheOneInMemoryForATime) {
  jobs::Job shown;
  shown.id = "shown";
  {
    const AsShown as_shown(live_, &shown);
    EXPECT_EQ(live_.job.id, "shown");
    live_.job.reason = "written meanwhile";
  }
  EXPECT_EQ(live_.job.id, "in memory");
  EXPECT_EQ(shown.reason, "written meanwhile");
  const AsShown unchanged(live_, nullptr);
  EXPECT_EQ(live_.job.id, "in memory");
}

}  // namespace
}  // namespace perseus::live
