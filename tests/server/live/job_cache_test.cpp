// Changes of a job while the store commits others, and after it has failed.
#include "server/live/job_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/server/service/service_parts.h"

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

/// What a look found is undone with the rest of memory: otherwise no wake would look for silent ranks again.
TEST_F(JobCacheTest, RanksAreLookedForAgainOnceTheLogIsReadAgain) {
  base_.append("job", {jobs::JobSeen{}});
  base_.database().change_log("job", [](auto& events) { events.pop_back(); });
  base_.live("job").calls.quiet_since_s = std::numeric_limits<double>::infinity();  // all others were found silent
  ASSERT_TRUE(base_.live("job").calls.all_wait());
  const auto refused = set_first_policy();
  base_.settle();
  ASSERT_FALSE(refused->ok());
  EXPECT_FALSE(base_.live("job").calls.all_wait());
}

TEST_F(JobCacheTest, AChangeWhoseClientDoesNotWaitAnyMoreIsShownOnceItIsDurable) {
  base_.jobs().execute("job", {[](const jobs::Job&, double) -> Result<Decision> {
                                 return Decision{{jobs::JobSeen{}}, {}};
                               },
                               {}});
  const auto set = set_first_policy();  // it is decided after the append that is under way
  base_.clock().advance(60);
  base_.due().perform(base_.clock().now_s());
  EXPECT_EQ(set->error().code, ErrorCode::unavailable);
  base_.settle_one();
  const jobs::Job* const shown = base_.live("job").shown.to_clients();
  ASSERT_TRUE(shown != nullptr);
  EXPECT_TRUE(shown->policies.empty());
  base_.settle();
  EXPECT_FALSE(base_.live("job").job.policies.empty());
}

TEST_F(JobCacheTest, AReadThatIsOlderThanTheJobChangesNothing) {
  base_.holds_results = true;
  base_.jobs().load("job", [](const auto&) {});
  base_.settle();
  base_.append("job", {jobs::PolicySet{jobs::PowerCap{Watts(900)}}});
  base_.release_results();
  EXPECT_FALSE(base_.live("job").job.policies.empty());
}

TEST_F(JobCacheTest, AFollowUpThatTheJobRejectsIsNotAcknowledged) {
  base_.hooks.follow_up = [](LiveJob& live, double) -> std::optional<jobs::EventBody> {
    if (live.job.policies.empty()) return std::nullopt;
    return jobs::StragglerTookEffect{"7"};  // there is no such notice
  };
  const auto set = set_first_policy();
  base_.settle();
  EXPECT_EQ(set->error().code, ErrorCode::internal);
  EXPECT_TRUE(base_.live("job").job.policies.empty()) << "what was folded before it is undone";
}

/// A planned job; when its time comes, point 1 is due.
class JobOfALateStore : public ::testing::Test {
 protected:
  JobOfALateStore() {
    parts_.base.create("job");
    parts_.plan();
    parts_.deploy(0);
    parts_.base.hooks.follow_up = [this](LiveJob& live, double) -> std::optional<jobs::EventBody> {
      if (!due_ || live.job.plan->of(0).point == 1) return std::nullopt;
      return parts_.deployed(1);
    };
  }
  LiveJob& live() { return parts_.live(); }
  void go_on() { parts_.base.jobs().go_on_as_shown(live()); }
  int answered_point() { return live().shown.to_clients()->plan->of(0).point; }

  testing::ServiceParts parts_;
  bool due_ = false;
};

TEST_F(JobOfALateStore, DueEventsReachRanksAndNotTheJob) {
  go_on();
  EXPECT_TRUE(live().shown.is_late());
  EXPECT_EQ(answered_point(), 0);
  const int times_shown = parts_.base.hooks.times_shown;
  due_ = true;
  parts_.base.clock().advance(1);
  go_on();
  EXPECT_EQ(answered_point(), 1);
  EXPECT_TRUE(is_provisional(live().shown.version()));
  EXPECT_EQ(parts_.base.hooks.times_shown, times_shown + 1);
  EXPECT_EQ(live().job.plan->of(0).point, 0) << "nothing of it is durable";
}

TEST_F(JobOfALateStore, GoesOnEverySecond) {
  go_on();
  EXPECT_EQ(parts_.base.due().next(), parts_.now_s() + 1);
}

TEST_F(JobOfALateStore, ThePlanKeepsItsVersionUntilItIsAnotherOne) {
  due_ = true;
  go_on();
  const std::int64_t version = live().shown.version();
  EXPECT_TRUE(live().shown.end());
  EXPECT_EQ(live().shown.to_clients(), nullptr);
  go_on();
  EXPECT_EQ(live().shown.version(), version);
  live().shown.end();
  due_ = false;
  parts_.base.append("job", {parts_.deployed(-1)});
  live().shown.committed_plan = 1;  // it is not durable
  go_on();
  EXPECT_EQ(live().shown.version(), version + 1);
}

}  // namespace
}  // namespace perseus::live
