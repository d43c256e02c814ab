#include "server/service/job_log.h"

#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::service {
namespace {

class JobLogTest : public ::testing::Test {
 protected:
  JobLogTest() { base_.create("job"); }
  Result<JobLog> read(std::int64_t after, bool tail = false) {
    testing::Answer<JobLog> answer;
    base_.access_to_store().read<JobLog>(
        [=](store::Store& store) { return tail ? read_tail(store, "job", after) : read_log(store, "job", after); },
        answer.take());
    base_.settle();
    return *answer;
  }

  testing::JobsInMemory base_;
};

TEST_F(JobLogTest, TheWholeLogIsFoldedAndOnlyNewerEventsAreReturned) {
  const auto log = read(1);
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->job, base_.live("job").job);
  EXPECT_FALSE(log->is_tail);
  ASSERT_EQ(log->events.size(), 2U);
  EXPECT_EQ(log->events.front().sequence, 2);
}

TEST_F(JobLogTest, ATailReadsNoEarlierEvent) {
  base_.database().jobs.at("job").events.front().body = "unreadable";
  EXPECT_GT(read(1)->job.unknown_events, 0) << "the whole log contains it";
  const auto tail = read(1, true);
  ASSERT_TRUE(tail.ok());
  EXPECT_TRUE(tail->is_tail);
  EXPECT_EQ(tail->events.size(), 2U);
}

TEST_F(JobLogTest, AFailureOfTheStoreIsReturned) {
  base_.database().failure = Error{ErrorCode::unavailable, "gone"};
  EXPECT_EQ(read(0).error().message, "gone");
  EXPECT_EQ(read(0, true).error().message, "gone");
}

}  // namespace
}  // namespace perseus::service
