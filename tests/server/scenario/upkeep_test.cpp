// Upkeep of the database over years: removal, packing, sweeping; also damage, and events of later versions.
#include "server/work/upkeep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

using namespace jobs;
using namespace service;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double day_s = 86400;

std::string registered(InProcess& target, const std::string& profile = "", const std::string& model = "") {
  jobs::RegisterJob job;
  job.degrees = {1, 2, 1};
  job.profile = profile;
  if (!model.empty()) {
    job.facts["model"] = model;
    job.profile_online = true;
    job.shape.emplace().microbatches = 3;
  }
  const auto made = target.register_job(job);
  PERSEUS_CHECK(made.ok(), made.ok() ? "" : made.error().message.c_str());
  return made->job;
}

std::vector<std::string> keys(InProcess& target) {
  std::vector<std::string> found;
  for (const auto& [key, bytes] : target.database().blobs()) found.push_back(key.substr(0, key.find('/')));
  return found;
}

TEST(Upkeep, RemovesAJobAndLaterItsBlobs) {
  service::ServiceOptions options;
  options.keep_finished_s = 10 * day_s;
  options.keep_unused_s = 5 * day_s;
  InProcess target(options);
  ASSERT_TRUE(target.put_profile(small_profile("small", 3)).ok());
  const std::string named = registered(target, "small");
  const std::string own = registered(target, "", "model");
  jobs::NamedProfile other = small_profile("small", 3);
  other.shape.microbatches = 4;
  ASSERT_TRUE(target.upload_profile(own, other).ok());
  EXPECT_THAT(keys(target), ElementsAre("frontier", "frontier", "input", "input", "known", "profile"));
  ASSERT_TRUE(target.finish_job(own).ok());
  ASSERT_TRUE(target.finish_job(named).ok());
  const auto wait = [&](double days) {
    for (int i = 0; i < 20; ++i) target.go_to(target.now_s() - 1'800'000'000 + days * day_s / 20);
  };
  wait(1);
  EXPECT_EQ(target.database().job(own).packed, target.database().job(own).last_sequence);
  wait(10);
  EXPECT_THAT(target.database().jobs(), IsEmpty());
  EXPECT_EQ(keys(target).size(), 6U) << "a job may be about to use them";
  wait(6);
  wait(6);  // time that the learned profile needed
  EXPECT_THAT(keys(target), ElementsAre("frontier", "input", "profile"));
}

TEST(Upkeep, ALearnedProfileStaysWhileAJobThatUsesItDoes) {
  service::ServiceOptions options;
  options.keep_finished_s = 10 * day_s;
  options.keep_unused_s = 1 * day_s;
  options.idle_expiry_s = 1000 * day_s;
  InProcess target(options);
  const std::string first = registered(target, "", "model");
  ASSERT_TRUE(target.upload_profile(first, small_profile("small", 3)).ok());
  const std::string second = registered(target, "", "model");
  ASSERT_TRUE(target.finish_job(first).ok());
  for (int i = 0; i < 60; ++i) target.go_to(target.now_s() - 1'800'000'000 + day_s);
  EXPECT_EQ(target.database().jobs().size(), 1U);
  EXPECT_TRUE(target.job(registered(target, "", "model"))->profile_trial);
}

TEST(Damaged, AJobIsNamedAndTheOthersGoOn) {
  InProcess target;
  ASSERT_TRUE(target.put_profile(small_profile("small", 3)).ok());
  const std::string damaged = registered(target, "small"), right = registered(target, "small");
  target.database().damaged.insert(damaged);
  target.restart();
  EXPECT_EQ(target.job(damaged).error().code, ErrorCode::internal);
  EXPECT_THAT(target.job(damaged).error().message, HasSubstr("job " + damaged + " is damaged: event 2"));
  EXPECT_EQ(target.job(right)->header.state, "deployed");
  EXPECT_EQ(target.service().list.list().find(damaged)->state, "damaged");
  EXPECT_EQ(target.service().list.list().find(right)->state, "deployed");
  jobs::SetStraggler everywhere;
  everywhere.target.accelerator = "GPU-0";
  EXPECT_EQ(target.set_straggler(everywhere).error().code, ErrorCode::not_found) << "and not the damage";
  target.go_to(8 * day_s);
  std::optional<Result<Ok>> removed;
  target.service().operations.remove(damaged, [&](Result<Ok> done) { removed = std::move(done); });
  target.settle();
  ASSERT_TRUE(removed && removed->ok());
  EXPECT_EQ(target.service().list.list().size(), 1U);
}

TEST(Damaged, AFrontierIsMadeAgainAndAProfileIsNamed) {
  InProcess target;
  ASSERT_TRUE(target.put_profile(small_profile("small", 3)).ok());
  for (const auto& [key, bytes] : target.database().blobs()) {
    if (key.starts_with("frontier/")) target.database().damaged.insert(key);
  }
  target.restart();
  EXPECT_EQ(target.job(registered(target, "small"))->header.state, "deployed");
  EXPECT_EQ(target.service().counts().characterizations, 1);

  target.database().damaged.insert("profile/small");
  jobs::RegisterJob job;
  job.degrees = {1, 2, 1};
  job.profile = "small";
  EXPECT_THAT(target.register_job(job).error().message, HasSubstr("'profile/small' is damaged"));
}

class LaterVersion : public ::testing::Test {
 protected:
  LaterVersion() {
    PERSEUS_CHECK(target_.put_profile(small_profile("small", 3)).ok(), "put_profile");
    job_ = registered(target_, "small");
    for (const int rank : {0, 1})
      PERSEUS_CHECK(target_.register_rank(rank_of(job_, {1, 2, 1}, rank)).ok(), "register_rank");
  }
  /// Writes an event as a server of a later version would.
  void writes(const std::string& body) { target_.database().add_event(job_, body); }
  InProcess target_;
  std::string job_;
};

TEST_F(LaterVersion, EventsOfALaterVersionAreKeptAndTheJobIsNotChanged) {
  writes(R"({"kind":"rank_moved","at_s":1800000001,"rank":1})");
  writes(R"({"kind":"job_seen","at_s":1800000002,"by":"a person"})");
  writes(R"({"kind":"straggler_in_force","at_s":1800000003,"id":"of a notice in another form"})");
  const auto before = target_.database().log(job_);
  target_.restart();
  const auto view = target_.job(job_);
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_THAT(view->reason, HasSubstr("was changed by a later version of Perseus"));

  jobs::SetStraggler slow;
  slow.job = job_;
  slow.target.pipeline = 0;
  slow.degree = 1.2;
  EXPECT_EQ(target_.set_straggler(slow).error().code, ErrorCode::unavailable);
  EXPECT_EQ(target_.finish_job(job_).error().code, ErrorCode::unavailable);
  jobs::WaitForPlan ask;
  ask.job = job_;
  const int wait = target_.wait_for_plan(ask);
  ASSERT_TRUE(target_.answer_of(wait).has_value());
  EXPECT_EQ(target_.answer_of(wait)->error().code, ErrorCode::unavailable) << "no plan that may be out of date";
  target_.go_to(30 * day_s);
  EXPECT_EQ(target_.database().log(job_), before) << "nothing is written to it, not even that it expired";

  std::vector<std::string> kinds;
  bool subscribed = false;
  target_.service().subscriptions.subscribe(
      job_, static_cast<std::int64_t>(before.size()) - 3,
      [&](const jobs::JobEvent& event) { kinds.push_back(event.kind); },
      [&](const Result<jobs::SubscriptionId>& done) { subscribed = done.ok(); });
  target_.settle();
  EXPECT_TRUE(subscribed);
  EXPECT_THAT(kinds, ElementsAre("unknown", "unknown", "straggler_in_force"));
  EXPECT_EQ(target_.job(registered(target_, "small"))->header.state, "deployed") << "other jobs go on";
}

TEST_F(LaterVersion, ReachesARankThatWaits) {
  jobs::WaitForPlan ask;
  ask.job = job_;
  ask.have_version = target_.job(job_)->plan->version;
  ask.max_wait_s = 1000;
  const int wait = target_.wait_for_plan(ask);
  EXPECT_FALSE(target_.answer_of(wait).has_value());
  writes(R"({"kind":"rank_moved","at_s":1800000001,"rank":1})");
  jobs::SetPolicy policy{job_, jobs::MaxSlowdown{}};
  EXPECT_FALSE(target_.set_policy(policy).ok());
  target_.go_to(1100);
  ASSERT_TRUE(target_.answer_of(wait).has_value());
}

/// A log of megabytes arrives in parts, each within the limit of a stream's reader.
TEST_F(LaterVersion, ALongLogIsReadToItsEnd) {
  constexpr int events = 5000;
  constexpr std::size_t at_most = 3U << 20U;
  for (int i = 0; i < events; ++i) writes(R"({"kind":")" + std::string(1000, 'k') + R"(","at_s":1800000001})");
  target_.restart();
  ASSERT_TRUE(target_.job(job_).ok());
  std::int64_t last = 0;
  int parts = 0;
  for (bool more = true; more; ++parts) {
    ASSERT_LT(parts, 10);
    std::size_t bytes = 0;
    more = false;
    jobs::SubscriptionId subscribed = 0;
    target_.service().subscriptions.subscribe(
        job_, last,
        [&](const jobs::JobEvent& event) {
          if ((more = event.kind == jobs::kPartOver)) return;
          EXPECT_EQ(event.sequence, ++last);
          bytes += event.text.size();
        },
        [&](const Result<jobs::SubscriptionId>& done) { subscribed = done.ok() ? *done : 0; });
    target_.settle();
    ASSERT_NE(subscribed, 0U);
    target_.service().subscriptions.unsubscribe(subscribed);
    EXPECT_LT(bytes, at_most);
  }
  EXPECT_EQ(last, static_cast<std::int64_t>(target_.database().log(job_).size()));
  EXPECT_GT(parts, 2);
}

TEST_F(LaterVersion, AJobOfALaterVersionIsNotReportedMissing) {
  target_.database().change_log(job_, [](auto& events) { events[0].body.insert(1, R"("later":1,)"); });
  target_.restart();
  EXPECT_EQ(target_.job(job_).error().code, ErrorCode::unavailable);
  EXPECT_EQ(target_.service().list.list().size(), 1U);
}

}  // namespace
}  // namespace perseus::testing
