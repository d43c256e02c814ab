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

}  // namespace
}  // namespace perseus::service
