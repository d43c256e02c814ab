// Changes of a job while the store commits others, and after it has failed.
#include "server/live/job_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::live {
namespace {

using ::testing::HasSubstr;
using testing::JobsInMemory;

class JobCacheTest : public ::testing::Test {
 protected:
  JobCacheTest() { base_.create("job"); }
  /// Adds a policy; refused where there is one.
  testing::Answer<Ok> set_first_policy() {
    testing::Answer<Ok> answer;
    base_.jobs().execute("job", {[](const jobs::Job& job, double) -> Result<Decision> {
                                   if (!job.policies.empty()) return Error{ErrorCode::conflict, "there is one"};
                                   return Decision{{jobs::PolicySet{jobs::PowerCap{Watts(900)}}}, {}};
                                 },
                                 answer.take()});
    return answer;
  }

  JobsInMemory base_;
};

TEST_F(JobCacheTest, ARefusalWaitsUntilWhatItRestsOnIsDurable) {
  const auto first = set_first_policy(), second = set_first_policy();
  EXPECT_FALSE(second.given()) << "the first change may fail";
  base_.settle();
  EXPECT_TRUE(first->ok());
  ASSERT_TRUE(second.given());
  EXPECT_EQ(second->error().message, "there is one");
  const auto third = set_first_policy();
  EXPECT_TRUE(third.given() && !third->ok()) << "nothing is under way: at once";
}

TEST_F(JobCacheTest, WhatTheStoreRefusesIsUndoneAndWhatRestedOnItIsAnError) {
  base_.database().write_failure = Error{ErrorCode::unavailable, "the disk is full"};
  const auto first = set_first_policy(), second = set_first_policy();
  base_.settle();
  EXPECT_EQ(first->error().message, "the disk is full");
  EXPECT_EQ(second->error().message, "the disk is full");
  base_.database().write_failure.reset();
  const auto again = set_first_policy();
  base_.settle();
  EXPECT_TRUE(again->ok());
  EXPECT_EQ(base_.live("job").job.policies.size(), 1U);
}

TEST_F(JobCacheTest, ReportsStayIfARestartIsRefusedAfterAnotherRankRegistered) {
  const auto begin = [this](int rank, std::int64_t epoch) {
    jobs::RankRegistered registered = JobsInMemory::rank_of_stage(rank);
    registered.epoch = epoch;
    testing::Answer<Ok> answer;
    base_.jobs().execute("job", {[registered](const jobs::Job&, double) -> Result<Decision> {
                                   return Decision{{registered}, {}};
                                 },
                                 answer.take()});
    return answer;
  };
  begin(0, 1);  // rank 1 does the same restart later
  base_.settle();
  base_.live("job").reports.progress.emplace(base_.clock().now_s(), false);
  base_.hooks.on_committed = [this](LiveJob&, const auto&) {
    base_.database().write_failure = Error{ErrorCode::unavailable, "the disk is full"};
  };
  const auto of_rank_1 = begin(1, 1), restart = begin(0, 2);
  base_.settle();
  EXPECT_TRUE(of_rank_1->ok());
  EXPECT_EQ(restart->error().message, "the disk is full");
  base_.jobs().with("job", [](const Result<LiveJob*>&) {});
  base_.settle();
  EXPECT_EQ(base_.live("job").job.restarts, 1);
  EXPECT_TRUE(base_.live("job").reports.progress);
}

TEST_F(JobCacheTest, RanksSeeAFallOfWattsWhileARiseWaitsForTheStore) {
  const auto grant = [this](double watts, bool once_durable) {
    jobs::PowerGranted granted;
    granted.granted_w = watts;
    base_.jobs().execute("job", {[granted](const jobs::Job&, double) -> Result<Decision> {
                                   return Decision{{granted}, {}};
                                 },
                                 {},
                                 once_durable});
  };
  const auto shown_w = [this] { return base_.live("job").shown.to_clients()->grant->granted_w; };
  base_.append("job", {jobs::PowerGranted{400}});
  grant(500, true);
  EXPECT_EQ(shown_w(), 400);
  grant(300, false);
  EXPECT_EQ(shown_w(), 300);
  base_.settle();
  EXPECT_EQ(base_.live("job").job.grant->granted_w, 300);
}

TEST_F(JobCacheTest, NoRiseOfWattsGoesToAStoreThatIsLate) {
  base_.create("other");
  base_.jobs().touch(base_.live("other"));
  base_.jobs().execute("other", {[](const jobs::Job&, double) -> Result<Decision> {
                                   return Decision{{jobs::JobSeen{}}, {}};
                                 },
                                 {}});
  base_.clock().advance(60);
  base_.due().perform(base_.clock().now_s());
  base_.jobs().execute("job", {[](const jobs::Job&, double) -> Result<Decision> {
                                 return Decision{{jobs::PowerGranted{500}}, {}};
                               },
                               {},
                               true});
  EXPECT_TRUE(base_.live("job").is_durable());
  base_.settle();
  EXPECT_FALSE(base_.live("job").job.grant);
}

TEST_F(JobCacheTest, ALogThatHasChangedBehindItIsReadAgain) {
  base_.append("job", {jobs::JobSeen{}});
  base_.database().change_log("job", [](auto& events) { events.pop_back(); });  // as from a backup
  const auto refused = set_first_policy();
  base_.settle();
  EXPECT_EQ(refused->error().code, ErrorCode::unavailable);
  EXPECT_THAT(refused->error().message, HasSubstr("its log is not the one that this server knew"));
  const auto again = set_first_policy();
  base_.settle();
  EXPECT_TRUE(again->ok());
  EXPECT_EQ(base_.live("job").job.sequence, 4);
}

}  // namespace
}  // namespace perseus::live
