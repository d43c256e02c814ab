// Event streams: past and new events in one sequence, each once.
#include "server/views/subscriptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::views {
namespace {

using testing::Answer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::JobsInMemory;

class SubscriptionsTest : public ::testing::Test {
 protected:
  SubscriptionsTest() {
    base_.create("job");  // 3 events
    base_.hooks.on_committed = [this](live::LiveJob& live, const std::vector<live::SequencedEvent>& events) {
      for (const live::SequencedEvent& event : events) subscriptions_->publish(live.job.id, event);
    };
  }
  Subscriptions::Take into(std::vector<std::int64_t>& sequences) {
    return [&sequences](const jobs::JobEvent& event) { sequences.push_back(event.sequence); };
  }

  JobsInMemory base_;
  work::Due due_;
  std::shared_ptr<Subscriptions> subscriptions_ =
      std::make_shared<Subscriptions>(base_.jobs(), base_.access_to_store(), base_.clock(), due_);
};

TEST_F(SubscriptionsTest, AReaderGetsNoGapWhileTheStoreDoesNotAnswer) {
  std::vector<std::int64_t> all;
  Answer<jobs::SubscriptionId> done;
  base_.database().failure = Error{ErrorCode::unavailable, "the disk is full"};
  subscriptions_->subscribe("job", 0, into(all), done.take());
  base_.settle();
  EXPECT_THAT(all, IsEmpty());
  base_.database().failure.reset();
  base_.clock().turn_to(*due_.next());
  due_.perform(base_.clock().now_s());
  base_.settle();
  EXPECT_THAT(all, ElementsAre(1, 2, 3));
  EXPECT_EQ(due_.next(), std::nullopt);
}

TEST_F(SubscriptionsTest, AnEventsReaderMayEndItsSubscription) {
  std::vector<std::int64_t> seen;
  jobs::SubscriptionId own = 0;
  own = subscriptions_->subscribe_all([&](const jobs::JobEvent& event) {
    seen.push_back(event.sequence);
    subscriptions_->unsubscribe(own);
  });
  base_.append("job", {jobs::JobSeen{}, jobs::JobSeen{}});
  EXPECT_THAT(seen, ElementsAre(4));
  EXPECT_EQ(subscriptions_->size(), 0U);
}

}  // namespace
}  // namespace perseus::views
