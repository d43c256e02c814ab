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

TEST_F(RankPlansTest, WhileTheFirstPlanIsHeldBackTheHighestClocksAreWantedAndListsLearnOfIt) {
  plan();
  deploy(1);
  live().job.clock_sets[0] = {1410, 1005};
  const jobs::Rank& rank = *job().ranks[0];
  const auto planned = plans->clocks_wanted(live(), rank);
  ASSERT_TRUE(planned);
  EXPECT_LT(planned->least_mhz, 1410);
  (void)base.jobs().index().take_changed();
  live().job.without_latency.insert(0);
  EXPECT_EQ(schedule(0), nullptr);
  EXPECT_TRUE(base.jobs().index().has_changed("job"));
  EXPECT_EQ(plans->clocks_wanted(live(), rank), (jobs::ClockSpan{1410, 1410}));
  (void)base.jobs().index().take_changed();
  live().job.without_latency.clear();
  EXPECT_NE(schedule(0), nullptr);
  EXPECT_TRUE(base.jobs().index().has_changed("job"));
  EXPECT_EQ(plans->clocks_wanted(live(), rank), planned);
}

TEST_F(RankPlansTest, ThatTheJobEndsIsNotToldBeforeItIsDurable) {
  plan();
  deploy(0);
  bool is_due = false;
  base.hooks.follow_up = [&](live::LiveJob& job, double) -> std::optional<jobs::EventBody> {
    if (!is_due || !job.job.live() || job.job.plan->of(0).point == 1) return std::nullopt;
    return deployed(1);
  };
  const auto change = [&](const jobs::EventBody& event, testing::Answer<Ok>& answer) {
    base.jobs().execute("job", {[event](const jobs::Job&, double) {
                                  return live::Decision{{event}, {}};
                                },
                                answer.take()});
  };
  testing::Answer<Ok> capped, finished;
  change(jobs::PolicySet{jobs::PowerCap{Watts(900)}}, capped);
  is_due = true;
  base.clock().advance(2);
  base.due().perform(now_s());
  ASSERT_TRUE(live().shown.is_late());
  change(jobs::JobFinished{}, finished);
  base.settle_one();
  EXPECT_TRUE(capped.given());
  EXPECT_FALSE(finished.given());
  const auto answer = plans->plan_for(live(), 0, 0);
  EXPECT_FALSE(answer && !*answer) << "it says that the job is finished";
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

}  // namespace
}  // namespace perseus::plans
