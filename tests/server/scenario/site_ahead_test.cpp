// A limit falls while the server is down: what jobs draw by the clocks and the waits of their ranks keeps it from that
// time on, at every level that a living server can keep.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "oracles/dice.h"
#include "tests/server/scenario/budgeted_job.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

constexpr int kMicrobatches = 4;
constexpr double kFirstFall_s = 60, kSecondFall_s = 90, kDown_s = 50, kUpAgain_s = 120;

class FallWithoutServer : public ::testing::Test {
 protected:
  struct TwoRanks {
    std::vector<BudgetedRank> ranks;
    [[nodiscard]] Watts draws(double now_s) const {
      const double period_s = std::max(ranks[0].period_s(now_s), ranks[1].period_s(now_s));
      return mean_power({kMicrobatches, {ranks[0].clocks(now_s), ranks[1].clocks(now_s)}, period_s});
    }
  };

  void job_comes(bool paces) {
    jobs::RegisterJob request;
    request.name = fmt::format("job-{}", jobs_.size());
    request.degrees = {1, 2, 1};
    request.profile = "small";
    request.least_rate = 0.5;
    const auto registered = server_.register_job(request);
    ASSERT_TRUE(registered.ok());
    TwoRanks job;
    for (int rank = 0; rank < 2; ++rank) {
      job.ranks.emplace_back(registered->job, rank, kMicrobatches);
      job.ranks.back().start(server_, true, paces);
    }
    jobs_.push_back(std::move(job));
  }
  void limits(double now_w, double first_w, double second_w) {
    const double from_s = server_.now_s() - seconds_;
    ASSERT_TRUE(
        server_
            .set_site(fmt::format(R"({{"domains":[{{"name":"hall","limits":[{{"from_s":0,"limit_w":{}}},)"
                                  R"({{"from_s":{},"limit_w":{}}},{{"from_s":{},"limit_w":{}}}]}}],"pacing":true}})",
                                  now_w, from_s + kFirstFall_s, first_w, from_s + kSecondFall_s, second_w))
            .ok());
  }
  void go_to(double until_s) {
    while (seconds_ < until_s) {
      server_.go_to(seconds_ += 0.25);
      for (TwoRanks& job : jobs_) {
        for (BudgetedRank& rank : job.ranks) rank.act(server_, dice_);
      }
      server_.go_to(seconds_);
    }
  }
  [[nodiscard]] Watts draws() const {
    Watts sum;
    for (const TwoRanks& job : jobs_) sum += job.draws(server_.now_s());
    return sum;
  }
  /// The most that is drawn until the first fall, until the second one, and later.
  std::array<Watts, 3> most_without_server() {
    go_to(kDown_s);
    const double began_s = server_.now_s() - seconds_;
    std::array<Watts, 3> most;
    server_.stay_down(seconds_ = kUpAgain_s, [&] {
      const double now_s = server_.now_s() - began_s;
      Watts& of = most[now_s < kFirstFall_s ? 0 : now_s < kSecondFall_s ? 1 : 2];
      of = std::max(of, draws());
    });
    return most;
  }

  SeededDice dice_{1};
  InProcess server_{{}, database_with({{"small", kMicrobatches}})};
  double seconds_ = 0;
  std::vector<TwoRanks> jobs_;
};

/// The slowest plan draws 218.2 W, and half of the fastest one's rate 199.2 W with waits.
class FallBelowTheSlowestPlan : public FallWithoutServer, public ::testing::WithParamInterface<double> {};

TEST_P(FallBelowTheSlowestPlan, IsKept) {
  job_comes(true);
  job_comes(true);
  limits(5000, 2 * 230, 2 * GetParam());
  const std::array<Watts, 3> most = most_without_server();
  EXPECT_LE(most[1], Watts(2 * 230.001));
  EXPECT_LE(most[2], Watts(2 * GetParam() + 0.001));
  EXPECT_GT(most[2], Watts(0.97 * 2 * GetParam())) << "not needlessly slow";
}
INSTANTIATE_TEST_SUITE_P(Levels, FallBelowTheSlowestPlan, ::testing::Values(225, 215, 210, 205, 200),
                         [](const auto& level) { return fmt::format("At{}W", level.param); });

TEST_F(FallWithoutServer, APacedJobFallsFurther) {
  job_comes(true);
  job_comes(true);
  limits(2 * 214, 2 * 208, 2 * 202);
  const std::array<Watts, 3> most = most_without_server();
  EXPECT_LE(most[0], Watts(2 * 214.001));
  EXPECT_LE(most[1], Watts(2 * 208.001));
  EXPECT_LE(most[2], Watts(2 * 202.001));
}

TEST_F(FallWithoutServer, AJobThatDoesNotWaitGivesWhatItsCeilingGives) {
  job_comes(true);
  job_comes(false);
  limits(5000, 2 * 230, 2 * 212);
  const std::array<Watts, 3> most = most_without_server();
  EXPECT_LE(most[2], Watts(2 * 212.001));
  EXPECT_EQ(jobs_[1].ranks[0].period_s(server_.now_s()), 0);
}

}  // namespace
}  // namespace perseus::testing
