// The schedule of each rank: a plan, the highest clocks, or nothing yet.
#include "server/plans/rank_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/plans/follow_ups.h"
#include "tests/server/service/service_parts.h"

namespace perseus::plans {
namespace {

using Kind = jobs::StageSchedule::Kind;

class RankPlansTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  RankPlansTest() { base.create("job"); }
  /// Null: the rank waits.
  std::shared_ptr<const jobs::StageSchedule> schedule(int rank, std::int64_t have_version = 0) {
    const auto answer = plans->plan_for(live(), rank, have_version);
    return answer ? answer->value().schedule : nullptr;
  }
  std::vector<int> clocks(int rank) {
    std::vector<int> mhz;
    for (const auto& one : schedule(rank)->clocks) mhz.push_back(one.clock.value());
    return mhz;
  }
};

TEST_F(RankPlansTest, ARankWaitsUntilThereIsAPlanOfAnotherVersion) {
  EXPECT_EQ(schedule(0), nullptr);
  plan();
  EXPECT_EQ(schedule(0), nullptr) << "a frontier is not a plan";
  deploy(0);
  ASSERT_NE(schedule(0), nullptr);
  EXPECT_EQ(schedule(0)->kind, Kind::plan);
  EXPECT_EQ(schedule(0)->version, 1);
  EXPECT_EQ(schedule(0, 1), nullptr) << "it has that version";
  EXPECT_EQ(schedule(7), nullptr) << "no such rank";
}

TEST_F(RankPlansTest, AScheduleIsMadeOncePerVersionAndStage) {
  plan();
  deploy(0);
  const auto first = schedule(0);
  EXPECT_EQ(schedule(0, 99), first);
  EXPECT_NE(schedule(1), first);
  deploy(1);
  EXPECT_NE(schedule(0), first);
  EXPECT_EQ(schedule(0)->version, 2);
}

TEST_F(RankPlansTest, APlanThatIsNotDurableIsNotShown) {
  plan();
  base.jobs().execute("job", {[plan = deployed(0)](const jobs::Job&, double) {
                                return Result<live::Decision>(live::Decision{{plan}, {}});
                              },
                              {}});
  EXPECT_EQ(job().version, 1);
  EXPECT_EQ(schedule(0), nullptr);
  base.settle();
  EXPECT_NE(schedule(0), nullptr);
}

TEST_F(RankPlansTest, AVersionsScheduleIsTheSameAfterARestartThoughAStragglerHasGone) {
  plan();
  base.append("job", {jobs::StragglerNoticed{"s1", {}, 0, 1.5, now_s()}, jobs::StragglerTookEffect{"s1"}});
  auto with_saving = FollowUps(options, now_s()).next(live(), now_s());
  ASSERT_TRUE(with_saving && std::holds_alternative<jobs::PlanDeployed>(*with_saving));
  base.append("job", {*with_saving});
  const auto before = schedule(0)->saving_pct;
  ASSERT_TRUE(before);
  base.append("job", {jobs::StragglerWithdrawn{"s1"}});
  live().schedules.clear();  // as in a server that starts anew
  EXPECT_EQ(schedule(0)->saving_pct, before);
}

TEST_F(RankPlansTest, ARankWaitsWhileTheFrontierIsRead) {
  plan();
  deploy(0);
  const auto read = std::exchange(live().frontiers, {});
  EXPECT_EQ(schedule(0), nullptr);
  live().frontiers = read;
  EXPECT_NE(schedule(0), nullptr);
}

TEST_F(RankPlansTest, WithoutAFrontierARankGetsItsHighestClocksForTheInputsComputations) {
  plan();
  deploy(-1);
  int changes = 0;
  base.hooks.on_shown = [&](live::LiveJob&) { ++changes; };
  EXPECT_EQ(schedule(0), nullptr) << "the input is being read";
  EXPECT_EQ(schedule(1), nullptr);
  base.settle();
  EXPECT_EQ(changes, 1) << "read once for all ranks";
  EXPECT_EQ(schedule(0)->kind, Kind::maximum_clock);
  EXPECT_EQ(clocks(0), std::vector<int>(4, 0)) << "two microbatches; the rank's clocks are not known";
}

TEST_F(RankPlansTest, AnInputThatCannotBeReadLeavesTheClocksOpen) {
  plan();
  deploy(-1);
  base.database().damaged.insert("input/" + job().input_of[0]);
  EXPECT_EQ(schedule(0), nullptr);
  base.settle();
  EXPECT_EQ(clocks(0), std::vector<int>());
}

TEST_F(RankPlansTest, WhileTheStoreIsLateRanksWaitAndTheInputIsReadAgain) {
  plan();
  deploy(-1);
  base.hooks.on_shown = [&](live::LiveJob& changed) { waiting.answer(changed); };  // as the service connects them
  std::vector<testing::Answer<jobs::PlanAnswer>> answers(2);
  for (int rank = 0; rank < 2; ++rank) {
    jobs::WaitForPlan request;
    request.job = "job";
    request.rank = rank;
    EXPECT_NE(waiting.wait(request, answers[rank].take()), 0);
  }
  base.clock().advance(10);  // the limit of a read
  base.due().perform(now_s());
  EXPECT_TRUE(live().retry_s);
  waiting.answer(live());  // a read that fails inside this call
  EXPECT_EQ(live().calls.waiters.size(), 2U);
  for (const auto& answer : answers) EXPECT_FALSE(answer.given());
  base.settle();  // the store has answered, too late
  waiting.answer(live());
  base.settle();
  for (const auto& answer : answers) {
    ASSERT_TRUE(answer.given());
    EXPECT_EQ((*answer)->schedule->kind, Kind::maximum_clock);
  }
}

TEST_F(RankPlansTest, TheFirstPlanWaitsForTheRanksSwitchLatencyAndLaterOnesDoNot) {
  plan();
  deploy(0);
  live().job.without_latency = {0};
  live().job.joined_s = now_s();
  EXPECT_EQ(schedule(0), nullptr);
  EXPECT_TRUE(live().replan.plan_held_back);
  base.clock().advance(options.latency_wait_s);
  EXPECT_NE(schedule(0), nullptr);
  EXPECT_FALSE(live().replan.plan_held_back);
  base.clock().advance(-options.latency_wait_s);
  EXPECT_NE(schedule(1), nullptr) << "some rank has it already";
}

TEST_F(RankPlansTest, AJobThatIsOverOrOfALaterVersionIsAnError) {
  live().job.unknown_events = 1;
  EXPECT_EQ(plans->plan_for(live(), 0, 0)->error().code, ErrorCode::unavailable);
  live().job.unknown_events = 0;
  base.append("job", {jobs::JobFinished{}});
  EXPECT_EQ(plans->plan_for(live(), 0, 0)->error().code, ErrorCode::conflict);
}

TEST(RankPlansOfWindows, AClientThatRanAWindowWaitsForTheNextOne) {
  testing::ServiceParts parts;
  jobs::JobRegistered online;
  online.profile_online = true;
  online.shape = jobs::PipelineShape{};
  online.shape->microbatches = 2;
  parts.base.create("job", 2, online);
  parts.base.append("job", {jobs::ProfilingStarted{{0}, {{1400, 700}, {1400, 700}}}});
  parts.windows->go_on(parts.live());
  parts.base.settle();
  ASSERT_EQ(parts.job().windows.size(), 1U);
  live::LiveJob& live = parts.live();
  const auto answer = parts.plans->plan_for(live, 0, 0);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->value().schedule->kind, Kind::profiling_window);
  EXPECT_EQ(live.windows.handed(0), 0);
  live.windows.ran(0, 0);
  EXPECT_FALSE(parts.plans->plan_for(live, 0, 0));
  EXPECT_TRUE(parts.plans->plan_for(live, 1, 0)) << "the other rank has not run it";
  parts.base.append(
      "job", {jobs::WindowHandedOut{.version = 2, .number = 1, .clocks_mhz = parts.job().windows[0].clocks_mhz}});
  EXPECT_EQ(parts.plans->plan_for(live, 0, 0)->value().schedule->window, 1);
}

}  // namespace
}  // namespace perseus::plans
