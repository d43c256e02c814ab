// The server holds back the first plan until ranks report their switch latency; here planning with that latency
// fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// A job of two ranks with a named profile; rank 0 has reported its latency and waits for a plan.
class FirstPlan : public ::testing::Test {
 protected:
  FirstPlan() {
    EXPECT_TRUE(target.put_profile(small_profile("two", 4)).ok());
    jobs::RegisterJob request;
    request.degrees.pp = 2;
    request.profile = "two";
    job = target.register_job(request).value().job;
    EXPECT_TRUE(registers(0).ok());
    wait = target.wait_for_plan({job, 0, 0, std::nullopt, std::nullopt});
    EXPECT_FALSE(target.answer_of(wait));
  }
  Status registers(int rank) {
    jobs::RegisterRank request = rank_of(job, {1, 2, 1}, rank);
    request.clocks_mhz = {1410, 810};
    request.epoch = 1;
    request.switch_latency = Seconds(0.02);
    return target.register_rank(request);
  }
  void lose_profiles() {
    for (const auto& [key, bytes] : target.database().blobs()) {
      if (key.starts_with("input/")) target.database().remove_blob(key);
    }
  }
  void expect_the_plan_that_there_is() {
    const auto answer = target.answer_of(wait);
    ASSERT_TRUE(answer && answer->ok());
    ASSERT_NE((*answer)->schedule, nullptr);
    EXPECT_EQ((*answer)->schedule->kind, jobs::StageSchedule::Kind::plan);
    EXPECT_EQ((*answer)->schedule->version, 1);
  }

  InProcess target;
  std::string job;
  int wait = 0;
};

TEST_F(FirstPlan, AJobWithALostProfileKeepsItsPlan) {
  lose_profiles();
  ASSERT_TRUE(registers(1).ok());
  expect_the_plan_that_there_is();
  EXPECT_EQ(target.job(job)->header.state, "deployed");
}

TEST_F(FirstPlan, ThatCannotBeMadeForTheLatencyIsTheOneThatThereIs) {
  target.service().subscriptions.subscribe_all([&](const jobs::JobEvent& event) {
    if (event.kind == "characterization_started") lose_profiles();
  });
  ASSERT_TRUE(registers(1).ok());
  expect_the_plan_that_there_is();
  EXPECT_EQ(target.job(job)->header.state, "failed");
  EXPECT_THAT(target.job(job)->reason, HasSubstr("characterization failed"));
}

TEST_F(FirstPlan, IsMadeOnceTheDatabaseAnswersAgain) {
  const jobs::SubscriptionId subscription =
      target.service().subscriptions.subscribe_all([&](const jobs::JobEvent& event) {
        if (event.kind == "rank_registered") target.break_store(true);
      });
  ASSERT_TRUE(registers(1).ok());
  target.service().subscriptions.unsubscribe(subscription);
  EXPECT_FALSE(target.answer_of(wait));
  target.break_store(false);
  target.go_to(3);
  const auto answer = target.answer_of(wait);
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ((*answer)->schedule->version, 2);
}

TEST(LatePlans, AreLoggedOnceAJobWhereRanksWait) {
  LoggedLines log;
  service::ServiceOptions options;
  options.host = &log;
  InProcess target(options);
  std::vector<std::string> jobs;
  for (const int microbatches : {4, 5}) {
    jobs::RegisterJob request;
    request.degrees.pp = 2;
    jobs.push_back(target.register_job(request).value().job);
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(target.register_rank(rank_of(jobs.back(), request.degrees, rank)).ok());
      target.wait_for_plan({jobs.back(), rank, 0, std::nullopt, std::nullopt});
    }
    target.hold_work(true);
    ASSERT_TRUE(target.upload_profile(jobs.back(), small_profile("", microbatches)).ok());
  }
  target.go_to(90);
  for (const std::string& job : jobs) {
    EXPECT_THAT(log.lines, Contains(HasSubstr("job " + job + ": no plan after 20 s")).Times(1));
  }
}

}  // namespace
}  // namespace perseus::testing
