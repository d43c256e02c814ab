// A server that has just started and has not read all jobs yet: it says so, and raises no grant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "oracles/dice.h"
#include "tests/server/scenario/budgeted_job.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SiteRestart : public ::testing::Test {
 protected:
  SiteRestart() {
    for (const char* name : {"one", "two"}) {
      jobs::RegisterJob request;
      request.name = name;
      request.degrees = {1, 2, 1};
      request.profile = "small";
      jobs_.push_back(server_.register_job(request).value().job);
      for (int rank = 0; rank < 2; ++rank) {
        ranks_.emplace_back(jobs_.back(), rank, 4);
        ranks_.back().start(server_, true);
      }
    }
    EXPECT_TRUE(server_.set_site(R"({"domains":[{"name":"hall","limits":[{"limit_w":900}]}],"dwell_s":1})").ok());
    go_to(40);
  }
  void go_to(double until_s) {
    while (seconds_ < until_s) {
      server_.go_to(seconds_ += 0.5);
      for (BudgetedRank& rank : ranks_) rank.act(server_, dice_);
    }
  }
  /// Of the first job; at maximum clock it draws about 490 W.
  double granted_w() { return server_.service().site.view()->jobs.front().granted.value_or(Watts(490)).value(); }

  SeededDice dice_{1};
  InProcess server_{{}, database_with({{"small", 4}})};
  double seconds_ = 0;
  std::vector<std::string> jobs_;
  std::vector<BudgetedRank> ranks_;
};

TEST_F(SiteRestart, ReadersAreToldOfJobsThatAreBeingRead) {
  EXPECT_THAT(*server_.site_power(), Not(HasSubstr("unread_jobs")));
  server_.hold_answers(true);
  server_.restart();
  EXPECT_THAT(*server_.site_power(), HasSubstr(R"("unread_jobs":2)"));
  EXPECT_EQ(server_.service().counts().site_unread_jobs, 2);
  EXPECT_TRUE(server_.service().site.view()->jobs.empty());
  server_.hold_answers(false);
  EXPECT_THAT(*server_.site_power(), Not(HasSubstr("unread_jobs")));
  EXPECT_EQ(server_.service().site.view()->jobs.size(), 2U);
}

/// It counted as nothing when the division began.
TEST(SiteDivision, AFrontierThatComesMeanwhileBringsNoGrantOfNothing) {
  InProcess server({}, database_with({{"small", 4}}));
  jobs::RegisterJob request;
  request.degrees.pp = 2;
  request.profile = "small";
  ASSERT_TRUE(server.finish_job(server.register_job(request).value().job).ok());  // its frontier is stored
  ASSERT_TRUE(server.set_site(R"({"domains":[{"name":"hall","limits":[{"limit_w":9000}]}]})").ok());
  server.restart();
  server.go_to(60);
  server.hold_work(true);
  const std::string job = server.register_job(request).value().job;
  server.hold_results(true);
  server.hold_work(false);  // the frontier is read
  server.go_to(62);         // the watts are divided
  for (int rank = 0; rank < 2; ++rank) {
    jobs::RegisterRank asked = rank_of(job, request.degrees, rank);
    asked.keeps_budgets = true;
    ASSERT_TRUE(server.register_rank(asked).ok());
  }
  server.hold_results(false);
  EXPECT_EQ(server.service().site.view()->jobs.front().state, "unlimited");
}

TEST_F(SiteRestart, AnotherLimitIsDividedThoughADivisionIsUnderWay) {
  const double before_w = granted_w();
  server_.hold_results(true);
  server_.go_to(42);
  ASSERT_TRUE(server_.set_site(R"({"domains":[{"name":"hall","limits":[{"limit_w":800}]}],"dwell_s":1})").ok());
  server_.hold_results(false);
  go_to(50);
  EXPECT_LT(granted_w(), before_w);
}

TEST_F(SiteRestart, NoGrantRisesUntilAllJobsAreRead) {
  const double before_w = granted_w();
  EXPECT_LT(before_w, 460);
  server_.database().damaged.insert(jobs_[1]);
  server_.restart();
  go_to(120);
  EXPECT_EQ(server_.service().site.view()->unread_jobs, 1);
  EXPECT_LE(granted_w(), before_w);
  EXPECT_TRUE(server_.set_site(R"({"domains":[{"name":"hall","limits":[{"limit_w":430}]}],"dwell_s":1})").ok());
  go_to(130);
  EXPECT_LT(granted_w(), 430.001) << "it falls all the same";
  EXPECT_TRUE(server_.set_site(R"({"domains":[{"name":"hall","limits":[{"limit_w":900}]}],"dwell_s":1})").ok());
  go_to(140);
  EXPECT_LT(granted_w(), 430.001);
  server_.service().operations.remove(jobs_[1], [](const Result<Ok>& done) { EXPECT_TRUE(done.ok()); });
  go_to(150);
  EXPECT_GT(granted_w(), 485);
}

TEST_F(SiteRestart, NoGrantRisesWhileALaterVersionHasChangedAJob) {
  const double before_w = granted_w();
  server_.database().add_event(jobs_[1], R"({"kind":"rank_moved","at_s":1800000041,"rank":1})");
  server_.restart();
  go_to(120);
  EXPECT_EQ(server_.service().site.view()->unread_jobs, 1);
  EXPECT_LE(granted_w(), before_w);
}

TEST_F(SiteRestart, NoAdmittedJobIsReadyUntilAllJobsAreRead) {
  server_.database().damaged.insert(jobs_[1]);
  server_.restart();
  const std::string request = R"({"job":"new","accelerators":1,"accelerator_w":300})";
  go_to(60);
  EXPECT_FALSE(server_.admit(request).ok()) << "they are still being read";
  go_to(75);
  EXPECT_THAT(*server_.admit(request), HasSubstr(R"("state":"admitted","ready":false)"));
  EXPECT_FALSE(server_.service().site.view()->reservations.front().ready);
  server_.service().operations.remove(jobs_[1], [](const Result<Ok>& done) { EXPECT_TRUE(done.ok()); });
  go_to(85);
  EXPECT_THAT(*server_.admit(request), HasSubstr(R"("ready":true)"));
  EXPECT_TRUE(server_.service().site.view()->reservations.front().ready);
}

TEST_F(SiteRestart, AMeterIsBelievedMeanwhile) {
  ASSERT_TRUE(server_.set_site(R"({"domains":[{"name":"hall"}],"accelerator_w":300})").ok());
  EXPECT_FALSE(server_.read_meter(R"({"readings":[{"domain":"hall","power_w":2500}]})").ok());
  server_.database().damaged.insert(jobs_[1]);
  server_.restart();
  EXPECT_TRUE(server_.read_meter(R"({"readings":[{"domain":"hall","power_w":2300}]})").ok());
}

}  // namespace
}  // namespace perseus::testing
