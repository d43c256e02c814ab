// Notices for a job, and for an accelerator that several jobs have.
#include "server/reports/straggler_notices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::reports {
namespace {

using testing::Answer;
using ::testing::HasSubstr;
using testing::JobsInMemory;
using ::testing::SizeIs;

class StragglerNoticesTest : public ::testing::Test {
 protected:
  StragglerNoticesTest() {
    base_.create("a");
    base_.create("b");
  }
  Answer<jobs::StragglerSet> set(const std::string& job, const std::string& accelerator, double degree) {
    jobs::SetStraggler request{job, {}, Seconds(0), degree};
    request.target.accelerator = accelerator;
    Answer<jobs::StragglerSet> answer;
    notices_->set(request, answer.take());
    base_.settle();
    return answer;
  }

  JobsInMemory base_;
  live::JobAccess access_{base_.jobs(), base_.clock()};
  std::shared_ptr<StragglerNotices> notices_ =
      std::make_shared<StragglerNotices>(base_.jobs(), access_, base_.clock(), base_);
};

TEST_F(StragglerNoticesTest, ANoticeForAJobIsDurableWhenItIsAnswered) {
  const auto answer = set("a", "GPU-1", 1.5);
  ASSERT_TRUE(answer.given() && answer->ok());
  EXPECT_THAT((*answer)->notices, SizeIs(1));
  EXPECT_THAT(base_.live("a").job.notices, SizeIs(1));
  EXPECT_EQ(base_.live("a").committed, 4);
  EXPECT_THAT(base_.live("b").job.notices, SizeIs(0));
}

TEST_F(StragglerNoticesTest, AnAcceleratorsNoticeAppliesToAllItsJobs) {
  const auto answer = set("", "GPU-1", 1.5);
  ASSERT_TRUE(answer.given() && answer->ok());
  EXPECT_THAT((*answer)->notices, SizeIs(2));
  EXPECT_THAT(base_.live("a").job.notices, SizeIs(1));
  EXPECT_THAT(base_.live("b").job.notices, SizeIs(1));
}

TEST_F(StragglerNoticesTest, ErrorsNameMissingMembers) {
  EXPECT_THAT(set("", "", 2)->error().message, HasSubstr("named by its accelerator"));
  EXPECT_EQ(set("", "GPU-9", 2)->error().code, ErrorCode::not_found);
  EXPECT_EQ(set("nowhere", "GPU-1", 2)->error().code, ErrorCode::not_found);
  base_.append("a", {jobs::JobFinished{}});
  EXPECT_EQ(set("a", "GPU-1", 2)->error().code, ErrorCode::conflict);
}

}  // namespace
}  // namespace perseus::reports
