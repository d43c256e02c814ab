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

TEST_F(FollowUpsTest, NothingFollowsFromAJobWithoutAProfile) {
  EXPECT_EQ(follow_ups_.next(live(), now_s()), std::nullopt);
  EXPECT_EQ(follow_ups_.due_s(live(), now_s()), now_s() + 60) << "its ranks call until then";
  base_.append("job", {jobs::JobSilent{now_s(), 0}});
  EXPECT_EQ(follow_ups_.due_s(live(), now_s()), now_s() + options_.idle_expiry_s);
}

TEST_F(FollowUpsTest, ANoticeTakesEffectAtItsTimeAndNotBefore) {
  const double effective_s = now_s() + 30;
  base_.append("job", {jobs::StragglerNoticed{"s1", {}, 0, 1.5, effective_s}});
  EXPECT_EQ(follow_ups_.due_s(live(), now_s()), effective_s);
  EXPECT_EQ(follow_ups_.next(live(), effective_s - 1), std::nullopt);
  EXPECT_EQ(follow_ups_.next(live(), effective_s), jobs::EventBody(jobs::StragglerTookEffect{"s1"}));
}

TEST_F(FollowUpsTest, AProfileIsCharacterizedOnce) {
  base_.append("job", {jobs::ProfileKnown{"input", "uploaded", {}, "1f1b", 2, ""}});
  EXPECT_EQ(follow_ups_.next(live(), now_s()), jobs::EventBody(jobs::CharacterizationStarted{{"input"}}));
  base_.append("job", {jobs::CharacterizationStarted{{"input"}}});
  EXPECT_EQ(follow_ups_.next(live(), now_s()), std::nullopt);
  EXPECT_EQ(follow_ups_.due_s(live(), now_s()), now_s() + 20) << "a restarted server continues";
}

TEST_F(FollowUpsTest, AJobWithoutRequestsExpires) {
  base_.append("job", {jobs::JobSilent{now_s(), 0}});
  const double over_s = now_s() + options_.idle_expiry_s;
  EXPECT_EQ(follow_ups_.next(live(), over_s), jobs::EventBody(jobs::JobExpired{}));
  live().last_seen_s = over_s - 1;  // the log records from time to time that it is not idle
  EXPECT_EQ(follow_ups_.next(live(), over_s), jobs::EventBody(jobs::JobSeen{}));
}

jobs::RankRegistered rank_of_a_process(int rank) {
  jobs::RankRegistered registered;
  registered.rank = registered.pp_rank = rank;
  registered.epoch = 7;
  return registered;
}

TEST_F(FollowUpsTest, AJobWhoseRanksDoNotCallIsSilentAndHeardAgain) {
  base_.append("job", {rank_of_a_process(0), rank_of_a_process(1)});
  const double began_s = now_s();
  live().calls.record(0, began_s + 10);
  EXPECT_EQ(follow_ups_.due_s(live(), began_s + 10), began_s + 70);
  EXPECT_EQ(follow_ups_.next(live(), began_s + 69), std::nullopt);
  for (const int rank : {0, 1}) live().calls.waiters[rank].rank = rank;
  EXPECT_EQ(follow_ups_.next(live(), began_s + 300), std::nullopt) << "the ranks wait for their plan";
  live().calls.waiters.clear();
  EXPECT_EQ(follow_ups_.next(live(), began_s + 70), jobs::EventBody(jobs::JobSilent{began_s + 10, 0}));
  base_.append("job", {jobs::JobSilent{began_s + 10, 0}});
  EXPECT_EQ(follow_ups_.next(live(), began_s + 80), std::nullopt) << "once";
  live().calls.closed(0);
  EXPECT_EQ(follow_ups_.next(live(), began_s + 80), jobs::EventBody(jobs::JobSilent{began_s + 10, 1}))
      << "what is known since";
  live().calls.record(0, began_s + 90);
  EXPECT_EQ(follow_ups_.next(live(), began_s + 90), jobs::EventBody(jobs::JobHeard{}));
}

TEST_F(FollowUpsTest, ARankThatDoesNotCallWhileOthersDoIsNamedAndHeardAgain) {
  base_.append("job", {rank_of_a_process(0), rank_of_a_process(1)});
  const double began_s = now_s();
  live().calls.record(0, began_s + 10);
  live().calls.waiters[0].rank = 1;
  EXPECT_EQ(follow_ups_.next(live(), began_s + 69), std::nullopt);
  EXPECT_EQ(follow_ups_.next(live(), began_s + 70), std::nullopt) << "it looks every 15 s";
  const jobs::JobSilent silent{began_s + 10, 0, {0}};
  EXPECT_EQ(follow_ups_.next(live(), began_s + 84), jobs::EventBody(silent));
  base_.append("job", {silent});
  EXPECT_EQ(follow_ups_.next(live(), began_s + 200), std::nullopt) << "once";
  live().calls.record(0, began_s + 201);
  EXPECT_EQ(follow_ups_.next(live(), began_s + 201), jobs::EventBody(jobs::JobHeard{{0}}));
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

TEST_F(FollowUpsTest, AJobAllOfWhoseRanksHaveEndedIsSilentSooner) {
  base_.append("job", {rank_of_a_process(0), rank_of_a_process(1)});
  const double began_s = now_s();
  for (const int rank : {0, 1}) live().calls.record(rank, began_s);
  for (const int rank : {0, 1}) live().calls.closed(rank);
  EXPECT_EQ(follow_ups_.next(live(), began_s + 29), std::nullopt);
  EXPECT_EQ(follow_ups_.next(live(), began_s + 30), jobs::EventBody(jobs::JobSilent{began_s, 2}));
}

/// It is heard by a call a moment before the log says so.
TEST_F(FollowUpsTest, AJobThatIsHeardOnceIsSilentAgain) {
  base_.append("job", {rank_of_a_process(0), rank_of_a_process(1)});
  const double heard_s = now_s() + 60;
  EXPECT_EQ(follow_ups_.next(live(), heard_s), jobs::EventBody(jobs::JobSilent{now_s(), 0}));
  base_.clock().advance(60);
  live().calls.record(0, heard_s - 0.001);
  base_.append("job", {jobs::JobSilent{heard_s - 60, 0}, jobs::JobHeard{}});
  EXPECT_EQ(follow_ups_.next(live(), heard_s + 59), std::nullopt);
  EXPECT_EQ(follow_ups_.next(live(), heard_s + 60), jobs::EventBody(jobs::JobSilent{heard_s, 0}));
}

}  // namespace
}  // namespace perseus::plans
