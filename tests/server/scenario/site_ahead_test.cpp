// A limit falls while the server is down: what jobs draw by the clocks and the waits of their ranks keeps it from that
// time on, at every level that a living server can keep.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "oracles/dice.h"
#include "tests/server/scenario/budgeted_job.h"
#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

constexpr int kMicrobatches = 4;
constexpr double kFirstFall_s = 60, kSecondFall_s = 90, kDown_s = 50, kUpAgain_s = 120;
constexpr double kRampEnd_s = 97;

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
    request.tier.least_rate = 0.5;
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
  /// A ramp that ends at kRampEnd_s.
  void ramp(double from_w, double to_w, double w_per_s) {
    const double from_s = server_.now_s() - seconds_;
    ASSERT_TRUE(server_
                    .set_site(fmt::format(R"({{"domains":[{{"name":"hall","ramp_down_w_per_s":{},"limits":[)"
                                          R"({{"from_s":0,"limit_w":{}}},{{"from_s":{},"limit_w":{}}}]}}],)"
                                          R"("pacing":true}})",
                                          w_per_s, from_w, from_s + kRampEnd_s, to_w))
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
  /// The same, where ranks of one job that follow different plans may draw more than either plan.
  [[nodiscard]] Watts draws_but_for_mixtures() const {
    constexpr double kMixed = 1.03;
    Watts sum;
    for (const TwoRanks& job : jobs_) {
      const bool same = job.ranks[0].version(server_.now_s()) == job.ranks[1].version(server_.now_s());
      sum += job.draws(server_.now_s()) / (same ? 1 : kMixed);
    }
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

TEST_F(FallWithoutServer, ALimitThatHasComeBackDoesNotFallAgain) {
  job_comes(true);
  job_comes(true);
  limits(2 * 240, 2 * 212, 2 * 240);
  go_to(kSecondFall_s + 14.5);
  Watts least = draws();
  server_.stay_down(seconds_ = kSecondFall_s + 24, [&] { least = std::min(least, draws()); });
  EXPECT_GT(least, Watts(2 * 225));
}

/// The server dies at a random moment of a ramp, or shortly before it: its ranks hold the whole fall.
class RampWithoutServer : public FallWithoutServer, public ::testing::WithParamInterface<int> {
 protected:
  /// The most that is drawn above the limit, and below it once the ramp has ended.
  void is_kept(double from_w, double to_w, double w_per_s) {
    go_to(5);
    ramp(from_w, to_w, w_per_s);
    const double begins_s = kRampEnd_s - (from_w - to_w) / w_per_s;
    SeededDice dice(static_cast<std::uint64_t>(GetParam()));
    go_to(std::floor(4 * dice.real(begins_s - 10, kRampEnd_s)) / 4);
    const double began_s = server_.now_s() - seconds_, killed_s = seconds_;
    Watts most_over, last;
    double over_s = 0;
    server_.stay_down(seconds_ = kRampEnd_s + 60, [&] {
      const double now_s = server_.now_s() - began_s;
      const double limit_w = std::clamp(to_w + w_per_s * (kRampEnd_s - now_s), to_w, from_w);
      last = draws();
      const Watts over = draws_but_for_mixtures() - Watts(limit_w);
      if (over > most_over) most_over = over, over_s = now_s;
    });
    EXPECT_LE(most_over.value(), 0.001) << over_s << " s, killed after " << killed_s << " s";
    EXPECT_GT(last, Watts(0.97 * to_w)) << "not needlessly slow";
  }
};

TEST_P(RampWithoutServer, ThatPacedJobsCanKeepIsKept) {
  job_comes(true);
  job_comes(true);
  is_kept(2 * 240, 2 * 205, 1.5);
}

TEST_P(RampWithoutServer, ThatPlansCanKeepIsKept) {
  job_comes(false);
  job_comes(false);
  is_kept(2 * 330, 2 * 225, 5);
}
INSTANTIATE_TEST_SUITE_P(Moments, RampWithoutServer, ::testing::Range(1, 6));

}  // namespace
}  // namespace perseus::testing
