// The job that ranks and clients see during a commit, and while the store is late.
#include "server/live/shown_job.h"

#include <gtest/gtest.h>

namespace perseus::live {
namespace {

class ShownJobTest : public ::testing::Test {
 protected:
  ShownJobTest() {
    jobs::JobRegistered registered;
    registered.degrees = {1, 2, 1};
    fold(registered);
    fold(jobs::RankRegistered{});
    shown_.committed_plan = job_.version;
  }
  /// Changes the job in memory.
  void fold(jobs::EventBody body) {
    PERSEUS_CHECK(jobs::apply(job_, jobs::Event{1'800'000'000, std::move(body)}).ok(), "folds");
  }
  static jobs::EventBody straggler(const std::string& id) {
    return jobs::StragglerNoticed{id, {}, 0, 1.5, 1'800'000'000};
  }

  jobs::Job job_;
  ShownJob shown_;
};

TEST_F(ShownJobTest, OtherwiseItIsTheJobInMemory) {
  EXPECT_EQ(shown_.to_rank(0), nullptr);
  EXPECT_EQ(shown_.to_clients(), nullptr);
}

TEST_F(ShownJobTest, DuringACommitItLacksTheChange) {
  shown_.keep(job_);
  fold(straggler("s1"));
  shown_.keep(job_);  // a second change of the same append
  fold(straggler("s2"));
  ASSERT_NE(shown_.to_clients(), nullptr);
  EXPECT_TRUE(shown_.to_clients()->notices.empty());
  EXPECT_EQ(shown_.to_rank(0), shown_.to_clients());
  EXPECT_FALSE(shown_.end());
  EXPECT_EQ(shown_.to_clients(), nullptr);
}

TEST_F(ShownJobTest, ARankThatTheDurableJobLacksSeesTheJobInMemory) {
  shown_.keep(job_);
  jobs::RankRegistered second;
  second.rank = second.pp_rank = 1;
  fold(second);
  EXPECT_NE(shown_.to_rank(0), nullptr);
  EXPECT_EQ(shown_.to_rank(1), nullptr);
}

TEST_F(ShownJobTest, ARankDoesNotSeeADurableJobWithAnotherPlan) {
  shown_.keep(job_);
  shown_.committed_plan = 1;  // the commit brought a plan
  EXPECT_EQ(shown_.to_rank(0), nullptr);
}

TEST_F(ShownJobTest, WhileTheStoreIsLateEachRankSeesItAndItsVersion) {
  shown_.keep(job_);
  jobs::Job& late = shown_.go_on(job_);
  late.version = provisional_version(1'800'000'000);
  EXPECT_EQ(shown_.to_rank(0), &late);
  EXPECT_EQ(shown_.to_rank(1), &late);
  EXPECT_EQ(shown_.to_clients(), &late);
  EXPECT_TRUE(is_provisional(shown_.version()));
  EXPECT_TRUE(shown_.end());
  EXPECT_EQ(shown_.version(), 0);
}

}  // namespace
}  // namespace perseus::live
