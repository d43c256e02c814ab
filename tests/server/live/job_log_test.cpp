#include <gtest/gtest.h>

#include "server/live/job_cache.h"
#include "tests/server/service/jobs_in_memory.h"

namespace perseus::live {
namespace {

class JobLogTest : public ::testing::Test {
 protected:
  JobLogTest() { base_.create("job"); }
  Result<JobLog> read(std::int64_t after) {
    testing::Answer<JobLog> answer;
    base_.access_to_store().read<JobLog>([=](store::Store& store) { return read_log(store, "job", after); },
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
  ASSERT_EQ(log->events.size(), 2U);
  EXPECT_EQ(log->events.front().sequence, 2);
}

TEST_F(JobLogTest, AFailureOfTheStoreIsReturned) {
  base_.database().failure = Error{ErrorCode::unavailable, "gone"};
  EXPECT_EQ(read(0).error().message, "gone");
}

}  // namespace
}  // namespace perseus::live
