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
  SequencedEvent fold(jobs::EventBody body) {
    const jobs::Event event{1'800'000'000, std::move(body)};
    PERSEUS_CHECK(jobs::apply(job_, event).ok(), "folds");
    return {job_.sequence, event};
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
  EXPECT_EQ(&shown_.durable(job_), &job_);
}

TEST_F(ShownJobTest, DuringACommitItLacksTheChange) {
  shown_.keep_durable(job_);
  const SequencedEvent first = fold(straggler("s1"));
  shown_.keep_durable(job_);  // a second change during the commit
  const SequencedEvent second = fold(straggler("s2"));
  ASSERT_NE(shown_.to_clients(), nullptr);
  EXPECT_TRUE(shown_.to_clients()->notices.empty());
  EXPECT_EQ(shown_.to_rank(0), shown_.to_clients());
  EXPECT_EQ(&shown_.durable(job_), shown_.to_clients());
  shown_.became_durable({first}, false);
  EXPECT_EQ(shown_.to_clients()->notices.size(), 1U);
  shown_.became_durable({second}, true);
  EXPECT_EQ(shown_.to_clients(), nullptr);
}

TEST_F(ShownJobTest, AnEventThatItHasIsNotFoldedAgain) {
  const SequencedEvent before = fold(straggler("s1"));
  shown_.keep_durable(job_);
  shown_.became_durable({before}, false);
  EXPECT_EQ(shown_.to_clients()->notices.size(), 1U);
}

TEST_F(ShownJobTest, ARankThatTheDurableJobLacksSeesTheJobInMemory) {
  shown_.keep_durable(job_);
  jobs::RankRegistered second;
  second.rank = second.pp_rank = 1;
  fold(second);
  EXPECT_NE(shown_.to_rank(0), nullptr);
  EXPECT_EQ(shown_.to_rank(1), nullptr);
}

TEST_F(ShownJobTest, ARankDoesNotSeeADurableJobWithAnotherPlan) {
  shown_.keep_durable(job_);
  shown_.committed_plan = 1;  // the commit brought a plan
  EXPECT_EQ(shown_.to_rank(0), nullptr);
}

TEST_F(ShownJobTest, TheShadowGoesBeforeTheDurableJob) {
  shown_.keep_durable(job_);
  shown_.shadow = std::make_unique<jobs::Job>(job_);
  shown_.shadow->version = provisional_version(1'800'000'000);
  EXPECT_EQ(shown_.to_rank(0), shown_.shadow.get());
  EXPECT_EQ(shown_.to_rank(1), shown_.shadow.get());
  EXPECT_EQ(shown_.to_clients(), shown_.shadow.get());
  EXPECT_TRUE(is_provisional(shown_.version()));
  shown_.shadow.reset();
  EXPECT_EQ(shown_.version(), 0);
  shown_.forget_durable();
  EXPECT_EQ(shown_.to_clients(), nullptr);
}

}  // namespace
}  // namespace perseus::live
