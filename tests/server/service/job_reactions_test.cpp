// What follows from new events and from time, with the real parts connected.
#include "server/service/job_reactions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::service {
namespace {

using ::testing::ElementsAre;

class JobReactionsTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  JobReactionsTest() {
    base.hooks.on_committed = [this](live::LiveJob& live, const auto& events) { reactions.committed(live, events); };
    base.create("job");
    plan();
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

TEST_F(JobReactionsTest, AJobThatCannotBeReadAtItsTimeIsReadAgain) {
  base.database().failure = Error{ErrorCode::unavailable, "the database is gone"};
  reactions.wake("not in memory");
  base.settle();
  EXPECT_EQ(base.due().next(), now_s() + live::kRetryAfter_s);
}

TEST_F(JobReactionsTest, TimesUnderAnEarlierPlanMakeNoStraggler) {
  policies::StragglerDetector& detector = live().detector.emplace(2);
  const auto round = [&] {
    (void)detector.report(1, 1);
    return detector.report(0, 1.5);
  };
  EXPECT_FALSE(round() || round());
  deploy(0);
  EXPECT_FALSE(round());
}

}  // namespace
}  // namespace perseus::service
