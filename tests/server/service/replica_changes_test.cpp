#include "server/service/replica_changes.h"

#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::service {
namespace {

using testing::JobsInMemory;

/// Two servers on one database; the second one has the job in memory and receives no notifications.
class ReplicaChangesTest : public ::testing::Test {
 protected:
  ReplicaChangesTest() {
    first_.create("job");
    second_.jobs().with("job", [](const Result<LiveJob*>&) {});
    second_.settle();
  }
  void request() {
    second_.jobs().with_changes("job", [this](const Result<LiveJob*>& live) {
      ++answered_;
      error_ = live ? "" : live.error().message;
      policies_ = live ? (*live)->job.policies.size() : 0;
    });
  }

  std::shared_ptr<store::MemoryDatabase> database_ = std::make_shared<store::MemoryDatabase>();
  JobsInMemory first_{database_}, second_{database_};
  int answered_ = 0;
  std::size_t policies_ = 0;
  std::string error_;
};

TEST_F(ReplicaChangesTest, ARequestSeesWhatAnotherServerCommittedBeforeIt) {
  first_.append("job", {jobs::PolicySet{jobs::PowerCap{Watts(900)}}});
  request();
  EXPECT_EQ(answered_, 0) << "the store is queried first";
  second_.settle();
  EXPECT_EQ(answered_, 1);
  EXPECT_EQ(policies_, 1U);
}

TEST_F(ReplicaChangesTest, RequestsThatComeDuringAQueryWaitForTheNextOne) {
  request();
  request();
  second_.settle();
  EXPECT_EQ(answered_, 2);
  EXPECT_EQ(policies_, 0U);
}

TEST_F(ReplicaChangesTest, AFailureOfTheStoreIsTheAnswer) {
  database_->failure = Error{ErrorCode::unavailable, "gone"};
  request();
  second_.settle();
  EXPECT_EQ(answered_, 1);
  EXPECT_EQ(error_, "gone");
}

}  // namespace
}  // namespace perseus::service
