// What follows from new events and from time, with the real parts connected.
#include "server/service/job_reactions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::service {
namespace {

using testing::Answer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobReactionsTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  JobReactionsTest() {
    base.hooks.on_committed = [this](live::LiveJob& live, const auto& events) { reactions.committed(live, events); };
    base.create("job");
    plan();
  }
  Answer<jobs::PlanAnswer> wait(int rank, std::int64_t have_version = 0, std::int64_t epoch = 0) {
    Answer<jobs::PlanAnswer> answer;
    jobs::WaitForPlan request;
    request.job = "job";
    request.rank = rank;
    request.have_version = have_version;
    request.epoch = epoch;
    waiting.wait(request, answer.take());
    return answer;
  }

  std::shared_ptr<views::Subscriptions> subscriptions =
      std::make_shared<views::Subscriptions>(base.jobs(), base.access_to_store(), base.clock(), due);
  views::JobListUpdater list{base.jobs(), base.clock()};
  JobReactions reactions{
      options, base.jobs(), base.clock(), {*subscriptions, waiting, *frontiers, *windows, *latencies, *shapes, list}};
};

TEST_F(JobReactionsTest, APlanIsPublishedBeforeItsRanksGetIt) {
  std::vector<std::string> order;
  subscriptions->subscribe_all([&](const jobs::JobEvent& event) { order.push_back(event.kind); });
  jobs::WaitForPlan request;
  request.job = "job";
  waiting.wait(request, [&](const Result<jobs::PlanAnswer>& answer) { order.push_back(answer->schedule->reason); });
  base.append("job", {jobs::JobSeen{}});
  deploy(0);
  EXPECT_THAT(order, ElementsAre("job_seen", "plan_deployed", "a test"));
  EXPECT_EQ(reactions.plans_deployed(), 1);
}

TEST_F(JobReactionsTest, OnlyANewVersionAnswersARankThatHasOne) {
  deploy(0);
  const auto answer = wait(0, 1);
  base.append("job", {jobs::JobSeen{}});
  EXPECT_FALSE(answer.given());
  deploy(1);
  ASSERT_TRUE(answer.given());
  EXPECT_EQ((*answer)->schedule->version, 2);
}

TEST_F(JobReactionsTest, TheEndOfAJobAnswersItsRanksAndStopsItsPlanning) {
  const auto answer = wait(0);
  base.append("job", {jobs::ProfileKnown{"another", "uploaded", {}, "1f1b", 2, ""}});
  live().job.characterizing.insert("another");
  live().frontiers.request("another");
  base.append("job", {jobs::JobFinished{}});
  ASSERT_TRUE(answer.given());
  EXPECT_EQ(answer->error().code, ErrorCode::conflict);
  EXPECT_FALSE(live().frontiers.requested().contains("another"));
}

TEST_F(JobReactionsTest, ALaterProcessEndsTheWaitOfItsPredecessor) {
  auto process = testing::JobsInMemory::rank_of_stage(0);
  process.epoch = 7;
  base.append("job", {process});
  const auto earlier = wait(0, 0, 7), other = wait(1);
  process.epoch = 9;
  base.append("job", {process});
  ASSERT_TRUE(earlier.given());
  EXPECT_EQ(earlier->error().code, ErrorCode::conflict);
  EXPECT_FALSE(other.given());
}

TEST_F(JobReactionsTest, ACountEndsTheTimeOfUncountedIterations) {
  deploy(0);
  live().reports.uncounted_since_s = now_s();
  base.append("job", {jobs::JobSeen{}});
  EXPECT_TRUE(live().reports.uncounted_since_s);
  base.append("job", {jobs::IterationsCounted{4, 1, 2, 4, true}});
  EXPECT_FALSE(live().reports.uncounted_since_s);
}

TEST_F(JobReactionsTest, ChangesOfThePlanAndTheEndAreLogged) {
  std::vector<std::string> lines;
  options.log = [&](const std::string& line) { lines.push_back(line); };
  base.append("job", {jobs::JobSeen{}});
  deploy(0);
  base.append("job", {jobs::JobFinished{}});
  EXPECT_THAT(lines, ElementsAre(HasSubstr("job job: plan 1 from iteration 0: point 0 of "),
                                 "job job: finished; no iterations under a plan were reported"));
}

TEST_F(JobReactionsTest, ARemovedJobsWaitsEnd) {
  const auto answer = wait(0);
  reactions.removed(live());
  ASSERT_TRUE(answer.given());
  EXPECT_EQ(answer->error().code, ErrorCode::not_found);
}

TEST_F(JobReactionsTest, TimeAppliesDueEventsAndRetriesRejectedAppends) {
  base.hooks.follow_up = [](live::LiveJob& live, double) {
    return live.job.sequence < 6 ? std::optional<jobs::EventBody>(jobs::JobSeen{}) : std::nullopt;
  };
  live().frontiers = {};
  live().retry_s = now_s();
  reactions.wake("job");
  EXPECT_EQ(live().retry_s, std::nullopt);
  base.settle();
  EXPECT_EQ(live().frontiers.all().size(), 1U) << "the frontier is read again";
  EXPECT_EQ(live().committed, 6);
}

TEST_F(JobReactionsTest, AJobThatCannotBeReadNowIsWokenAgain) {
  base.database().failure = Error{ErrorCode::unavailable, "the disk is full"};
  base.append("job", {jobs::JobSeen{}});
  reactions.wake("job");
  base.settle();
  EXPECT_EQ(base.due().next(), now_s() + live::kRetryAfter_s);
  base.database().failure.reset();
  reactions.wake("nowhere");
  base.settle();
  base.hooks.woken.clear();
  base.due().perform(1e12);
  EXPECT_EQ(base.hooks.woken, (std::vector<std::string>{"job"}));
}

}  // namespace
}  // namespace perseus::service
