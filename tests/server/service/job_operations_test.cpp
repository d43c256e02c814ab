// Policies, the end and the removal of a job.
#include "server/service/job_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::service {
namespace {

using ::testing::HasSubstr;

class JobOperationsTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  JobOperationsTest() { base.create("job"); }
  template <class Call>
  Result<Ok> answer_of_call(Call call) {
    return answer_of<Ok>(call);
  }

  JobOperations operations_{base.jobs(), access, *profiles};
};

TEST_F(JobOperationsTest, AJobIsRemovedOnlyAfterItsEnd) {
  const auto remove = [&] { return answer_of_call([&](auto done) { operations_.remove("job", done); }); };
  const auto finish = [&] { return answer_of_call([&](auto done) { operations_.finish("job", done); }); };
  EXPECT_THAT(remove().error().message, HasSubstr("finish it first"));
  EXPECT_TRUE(finish().ok());
  EXPECT_TRUE(finish().ok()) << "a retry";
  EXPECT_TRUE(remove().ok());
  EXPECT_EQ(remove().error().code, ErrorCode::not_found);
  EXPECT_TRUE(base.database().jobs.empty());
}

TEST_F(JobOperationsTest, TheSamePolicyAgainWritesNothing) {
  const auto set = [&] {
    return answer_of_call([&](auto done) { operations_.set_policy({"job", jobs::PowerCap{Watts(900)}}, done); });
  };
  EXPECT_TRUE(set().ok());
  const std::int64_t committed = live().committed;
  EXPECT_TRUE(set().ok());
  EXPECT_EQ(live().committed, committed);
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
  const std::int64_t committed = live().committed;
  EXPECT_TRUE(answer_of_call([&](auto done) { operations_.drop_plan(drop, done); }).ok());
  EXPECT_EQ(live().committed, committed);
}

}  // namespace
}  // namespace perseus::service
