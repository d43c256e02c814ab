// Finding the job and the rank of a request.
#include "server/live/job_access.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::live {
namespace {

using testing::Answer;
using ::testing::HasSubstr;
using testing::JobsInMemory;

/// Two servers on one database. This one has the job in memory with one of its two ranks.
class JobAccessTest : public ::testing::Test {
 protected:
  JobAccessTest() { base_.create("job", 1); }
  Status with_rank(int rank, std::int64_t version = 0) {
    std::optional<Status> found;
    access_.with_rank("job", rank, version,
                      [&](const Result<LiveJob*>& live) { found = live ? Status(Ok{}) : Status(live.error()); });
    base_.settle();
    PERSEUS_CHECK(found.has_value(), "no answer");
    return *found;
  }
  /// -1: an error.
  std::int64_t shown_sequence() {
    Answer<std::int64_t> answer;
    access_.show<std::int64_t>(
        "job", [](const LiveJob& live) { return Result<std::int64_t>(live.job.sequence); }, answer.take());
    base_.settle();
    return answer->ok() ? answer->value() : -1;
  }
  LiveJob& live() { return base_.live("job"); }

  std::shared_ptr<testing::TestDatabase> database_ = std::make_shared<testing::TestDatabase>();
  JobsInMemory base_{database_};
  JobAccess access_{base_.jobs(), base_.clock()};
};

TEST_F(JobAccessTest, ARequestToChangeAJobIsActivityAndAReadIsNot) {
  live().last_seen_s = 0;
  EXPECT_EQ(shown_sequence(), 2);
  EXPECT_EQ(live().last_seen_s, 0);
  EXPECT_TRUE(with_rank(0).ok());
  EXPECT_EQ(live().last_seen_s, base_.clock().now_s());
}

TEST_F(JobAccessTest, ARankOutsideTheJobIsRejectedWithoutAStoreRead) {
  database_->may_read = false;
  for (const int rank : {-1, 2}) {
    EXPECT_EQ(with_rank(rank).error().message, fmt::format("job job: rank {} is not registered", rank));
  }
}

TEST_F(JobAccessTest, AKnownRankIsFoundWhileTheStoreFails) {
  database_->failure = Error{ErrorCode::unavailable, "the disk is full"};
  EXPECT_TRUE(with_rank(0).ok());
  EXPECT_EQ(with_rank(1).error().message, "job job: rank 1 is not registered");
}

TEST_F(JobAccessTest, AJobInMemoryIsShownThoughItCannotBeReadAgain) {
  database_->failure = Error{ErrorCode::unavailable, "the disk is full"};
  base_.append("job", {jobs::JobSeen{}});
  EXPECT_EQ(shown_sequence(), 3);
}

TEST_F(JobAccessTest, ClientsSeeNoChangeBeforeItIsDurable) {
  Answer<Ok> done;
  access_.execute("job", command_for_live_job(
                             [](const jobs::Job&) {
                               return Result<std::vector<jobs::EventBody>>({jobs::PolicySet{jobs::PowerCap{Watts(9)}}});
                             },
                             done.take()));
  Answer<std::int64_t> before;
  access_.show<std::int64_t>(
      "job", [](const LiveJob& live) { return Result<std::int64_t>(live.job.sequence); }, before.take());
  EXPECT_FALSE(done.given());
  EXPECT_EQ(before->value(), 2);
  base_.settle();
  EXPECT_TRUE(done.given() && done->ok());
  EXPECT_EQ(shown_sequence(), 3);
}

TEST_F(JobAccessTest, AJobOfALaterVersionIsShownAndNotChanged) {
  live().job.unknown_events = 1;
  EXPECT_EQ(shown_sequence(), 2);
  Answer<Ok> done;
  access_.execute("job", {{}, done.take()});
  EXPECT_EQ(done->error().code, ErrorCode::unavailable);
  EXPECT_THAT(done->error().message, HasSubstr("later version"));
}

TEST_F(JobAccessTest, AnExpiredJobIsRevivedOnce) {
  base_.append("job", {jobs::JobExpired{}});
  EXPECT_TRUE(access_.revive_if_expired(live()));
  EXPECT_FALSE(access_.revive_if_expired(live()));
  base_.settle();
  EXPECT_EQ(live().job.state, jobs::JobState::registered);
  EXPECT_EQ(live().committed, 4);
}

TEST_F(JobAccessTest, AJobThatIsOverRejectsChanges) {
  base_.append("job", {jobs::JobFinished{}});
  Answer<Ok> done;
  access_.execute("job", command_for_live_job(
                             [](const jobs::Job&) { return Result<std::vector<jobs::EventBody>>({jobs::JobSeen{}}); },
                             done.take()));
  base_.settle();
  EXPECT_EQ(done->error().code, ErrorCode::conflict);
  EXPECT_EQ(done->error().message, "job job is finished");
  Answer<Ok> unknown;
  access_.execute("nowhere", {{}, unknown.take()});
  base_.settle();
  EXPECT_EQ(unknown->error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace perseus::live
