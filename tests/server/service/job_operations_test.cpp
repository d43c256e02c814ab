// Policies, the end and the removal of a job.
#include "server/service/job_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::service {
namespace {

using testing::Answer;
using ::testing::HasSubstr;
using testing::JobsInMemory;

class JobOperationsTest : public ::testing::Test {
 protected:
  JobOperationsTest() { base_.create("job"); }
  template <class Call>
  Result<Ok> answer_of_call(Call call) {
    Answer<Ok> answer;
    call(answer.take());
    base_.settle();
    PERSEUS_CHECK(answer.given(), "no answer");
    return *answer;
  }

  ServiceOptions options_;
  JobsInMemory base_;
  JobAccess access_{base_.jobs(), base_.clock()};
  std::shared_ptr<Characterizations> characterizations_ = std::make_shared<Characterizations>(
      options_, base_.access_to_store(), base_.clock(), static_cast<Executor&>(base_));
  std::shared_ptr<StoredProfiles> profiles_ = std::make_shared<StoredProfiles>(
      options_, base_.access_to_store(), static_cast<Executor&>(base_), *characterizations_);
  JobOperations operations_{base_.jobs(), access_, *profiles_};
};

TEST_F(JobOperationsTest, AJobIsRemovedOnlyAfterItsEnd) {
  const auto remove = [&] { return answer_of_call([&](auto done) { operations_.remove("job", done); }); };
  const auto finish = [&] { return answer_of_call([&](auto done) { operations_.finish("job", done); }); };
  EXPECT_THAT(remove().error().message, HasSubstr("finish it first"));
  EXPECT_TRUE(finish().ok());
  EXPECT_TRUE(finish().ok()) << "a retry";
  EXPECT_TRUE(remove().ok());
  EXPECT_EQ(remove().error().code, ErrorCode::not_found);
  EXPECT_TRUE(base_.database().jobs.empty());
}

TEST_F(JobOperationsTest, TheSamePolicyAgainWritesNothing) {
  const auto set = [&] {
    return answer_of_call([&](auto done) { operations_.set_policy({"job", jobs::PowerCap{Watts(900)}}, done); });
  };
  EXPECT_TRUE(set().ok());
  const std::int64_t committed = base_.live("job").committed;
  EXPECT_TRUE(set().ok());
  EXPECT_EQ(base_.live("job").committed, committed);
  const auto clear = [&] {
    return answer_of_call([&](auto done) { operations_.clear_policy({"job", "power_cap"}, done); });
  };
  EXPECT_TRUE(clear().ok());
  EXPECT_EQ(clear().error().code, ErrorCode::not_found);
}

TEST_F(JobOperationsTest, ADroppedPlanThatIsNotInForceChangesNothing) {
  jobs::DropPlan drop;
  drop.job = "job";
  drop.version = 3;
  const std::int64_t committed = base_.live("job").committed;
  EXPECT_TRUE(answer_of_call([&](auto done) { operations_.drop_plan(drop, done); }).ok());
  EXPECT_EQ(base_.live("job").committed, committed);
}

}  // namespace
}  // namespace perseus::service
