// The guard against plans that slow iterations down: which plans it drops, after how many iterations, and which
// slowdowns it tolerates.
#include "training/client/plan_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace perseus::client {
namespace {

using ::testing::HasSubstr;

ClockPlan promise_of(std::int64_t version, double promised_s, double maximum_clock_time_s = 1) {
  ClockPlan plan;
  plan.kind = ClockPlan::Kind::plan;
  plan.version = version;
  plan.iteration_time_s = promised_s;
  plan.maximum_clock_time_s = maximum_clock_time_s;
  return plan;
}

/// A rank that follows its guard's decisions.
class GuardedRank {
 public:
  explicit GuardedRank(double tolerance = 0.01, double most_slowdown = PlanGuard::kMostSlowdown)
      : guard(tolerance, most_slowdown) {}

  void gets(const ClockPlan& plan) {
    guard.arrives(plan);
    version_ = plan.version;
    kind_ = plan.kind;
  }
  [[nodiscard]] bool follows() const {
    return version_ != 0 && kind_ != ClockPlan::Kind::maximum_clock && !guard.holds();
  }
  /// `computed_s`: 0: not known. `other_clock`: the device runs below the clocks that were set.
  void runs(double time_s, double computed_s = 0, bool other_clock = false) {
    const bool follows_plan = follows();
    guard.take({version_, follows_plan || kind_ == ClockPlan::Kind::maximum_clock, !follows_plan, time_s, computed_s,
                other_clock});
    trained_s += time_s;
    if (auto plan = guard.take_dropped()) dropped.push_back(*plan);
  }
  /// Runs iterations, each at the highest clock or under the plan as the guard decides; counts those under the plan.
  void trains(int iterations, const std::function<double()>& at_maximum, const std::function<double()>& under_plan) {
    for (int i = 0; i < iterations; ++i) {
      slow_iterations += follows() ? 1 : 0;
      runs(follows() ? under_plan() : at_maximum());
    }
  }
  void trains(int iterations, double at_maximum_s, double under_plan_s) {
    trains(
        iterations, [=] { return at_maximum_s; }, [=] { return under_plan_s; });
  }

  PlanGuard guard;
  std::vector<DroppedPlan> dropped;
  int slow_iterations = 0;
  double trained_s = 0;

 private:
  std::int64_t version_ = 0;
  ClockPlan::Kind kind_ = ClockPlan::Kind::maximum_clock;
};

TEST(PlanGuard, APlanThatKeepsItsPromiseRuns) {
  GuardedRank rank;
  rank.trains(10, 1, 0);
  rank.gets(promise_of(1, 1));
  rank.trains(1000, 1, 1.005);
  EXPECT_EQ(rank.slow_iterations, 1000);
  EXPECT_TRUE(rank.dropped.empty());
}

TEST(PlanGuard, APlanSlowerThanPromisedIsDroppedWithinAFewIterationsAndOnce) {
  GuardedRank rank;
  rank.trains(10, 1, 0);
  rank.gets(promise_of(7, 1));
  rank.trains(60, 1, 1.05);
  EXPECT_LE(rank.slow_iterations, 12) << "six until the trial, and a second look";
  ASSERT_EQ(rank.dropped.size(), 1U);
  EXPECT_EQ(rank.dropped[0].version, 7);
  EXPECT_DOUBLE_EQ(rank.dropped[0].promised_s, 1);
  EXPECT_DOUBLE_EQ(rank.dropped[0].measured_s, 1.05);
  EXPECT_THAT(rank.dropped[0].text, HasSubstr("iterations take 1.05 s"));
  rank.gets(promise_of(7, 1));  // the server was unreachable and sends it again
  EXPECT_FALSE(rank.follows());
  rank.gets(promise_of(8, 1));
  rank.trains(100, 1, 1.0);
  EXPECT_TRUE(rank.follows()) << "another plan gets its chance";
}

TEST(PlanGuard, AllAtTheLowestClockIsRefusedAtOnceOrDroppedWithinTwoIterations) {
  GuardedRank honest;
  honest.trains(10, 1, 0);
  honest.gets(promise_of(1, 4));
  EXPECT_FALSE(honest.follows());
  honest.trains(10, 1, 4);
  EXPECT_EQ(honest.slow_iterations, 0);
  ASSERT_EQ(honest.dropped.size(), 1U);
  EXPECT_THAT(honest.dropped[0].text, HasSubstr("promises 4 s"));

  for (const double promised_s : {1.0, 0.0}) {
    GuardedRank lied_to;
    lied_to.trains(10, 1, 0);
    lied_to.gets(promise_of(1, promised_s));
    lied_to.trains(60, 1, 4);
    EXPECT_EQ(lied_to.slow_iterations, 3) << promised_s << ": two, and a second look";
    EXPECT_EQ(lied_to.dropped.size(), 1U) << promised_s;
  }
}

TEST(PlanGuard, APlanIsRefusedAtOnceThoughTheOneBeforeItCostTooMuch) {
  GuardedRank rank;
  rank.trains(10, 1, 0);
  rank.gets(promise_of(1, 1));
  rank.trains(60, 1, 8);
  ASSERT_EQ(rank.dropped.size(), 1U);
  rank.gets(promise_of(2, 4));
  rank.trains(2, 1, 8);
  EXPECT_EQ(rank.dropped.size(), 2U);
  EXPECT_EQ(rank.slow_iterations, 3) << "of the first";
}

TEST(PlanGuard, TheFirstPlanIsRefusedToo) {
  GuardedRank rank;
  rank.gets(promise_of(1, 4));  // before the first iteration
  rank.trains(60, 1, 4);
  EXPECT_EQ(rank.slow_iterations, 0);
  EXPECT_EQ(rank.dropped.size(), 1U);
}

TEST(PlanGuard, AFirstPlanWaitsForThreeIterationsAtTheHighestClock) {
  GuardedRank rank;
  rank.gets(promise_of(1, 1));
  rank.runs(30);  // warm-up
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(rank.follows());
    rank.runs(1);
  }
  EXPECT_TRUE(rank.follows());
}

TEST(PlanGuard, AStragglersOrAPolicysPlanMayBeSlow) {
  GuardedRank rank;
  rank.trains(10, 1, 0);
  ClockPlan plan = promise_of(1, 1.9);
  plan.slower_because = "pipeline 1 is 2.5 times slower";
  rank.gets(plan);
  rank.trains(100, 1, 1.9);
  EXPECT_EQ(rank.slow_iterations, 100);
  rank.gets(promise_of(2, 1));
  rank.trains(100, 1, 1);
  rank.gets(plan);
  EXPECT_TRUE(rank.dropped.empty());
}

TEST(PlanGuard, NoReasonAllowsMoreThanTheMostSlowdown) {
  ClockPlan plan = promise_of(1, 2.5);
  plan.slower_because = "a policy";
  GuardedRank rank;
  rank.trains(10, 1, 0);
  rank.gets(plan);
  rank.trains(100, 1, 2.5);
  EXPECT_EQ(rank.slow_iterations, 0);
  ASSERT_GE(rank.dropped.size(), 1U);
  EXPECT_TRUE(rank.dropped[0].not_allowed) << "no fault of the profile";
  EXPECT_THAT(rank.dropped[0].text, HasSubstr("promises 2.5 s for an iteration that takes 1 s at the highest clock; "
                                              "allowed: 2 times that (PERSEUS_MOST_SLOWDOWN)"));

  GuardedRank allowed(0.01, 3);
  allowed.trains(10, 1, 0);
  allowed.gets(plan);
  allowed.trains(100, 1, 2.5);
  EXPECT_EQ(allowed.slow_iterations, 100);
}

TEST(PlanGuard, ASlowdownIsJudgedAgainstTheModelsOwnHighestClock) {
  // The model predicts iterations 5 % shorter than this rank's, with and without the plan.
  GuardedRank rank;
  rank.trains(10, 1.05, 0);
  ClockPlan plan = promise_of(1, 1.02, 1);
  plan.slower_because = "a policy";
  rank.gets(plan);
  rank.trains(200, 1.05, 1.05 * 1.02);
  EXPECT_EQ(rank.slow_iterations, 200);
  plan.version = 2;
  rank.gets(plan);
  rank.trains(60, 1.05, 1.05 * 1.04);
  EXPECT_EQ(rank.dropped.size(), 1U);
}

TEST(PlanGuard, WithoutTheModelsHighestClockThePromiseCounts) {
  GuardedRank rank;
  rank.trains(10, 1, 0);
  ClockPlan plan = promise_of(1, 1.1, 0);
  plan.slower_because = "a policy";
  rank.gets(plan);
  rank.trains(100, 1, 1.1);
  EXPECT_TRUE(rank.dropped.empty());
  plan.version = 2;
  rank.gets(plan);
  rank.trains(60, 1, 1.13);
  EXPECT_EQ(rank.dropped.size(), 1U);
}

TEST(PlanGuard, WithoutAReasonAPlanIsAsFastAsTheHighestClock) {
  for (const double maximum_clock_time_s : {1.0, 0.0}) {
    GuardedRank rank;
    rank.trains(10, 1, 0);
    rank.gets(promise_of(1, 1.4, maximum_clock_time_s));
    rank.trains(60, 1, 1.4);
    EXPECT_EQ(rank.dropped.size(), 1U);
    EXPECT_LE(rank.slow_iterations, 3);
  }
}

TEST(PlanGuard, CheckpointsAndLateBatchesAreForgiven) {
  GuardedRank rank;
  for (int i = 0; i < 10; ++i) rank.runs(1, 0.9);
  rank.gets(promise_of(1, 1));
  for (int i = 0; i < 500; ++i) {
    rank.slow_iterations += rank.follows() ? 1 : 0;
    rank.runs(i % 10 == 0 ? 20 : 1, 0.9);
  }
  EXPECT_EQ(rank.slow_iterations, 500);
}

TEST(PlanGuard, ASlowdownOfEverythingIsNotThePlansFault) {
  GuardedRank rank;
  rank.trains(10, 1, 0);
  rank.gets(promise_of(1, 1));
  rank.trains(100, 1, 1);
  const int before = rank.slow_iterations;
  rank.trains(1000, 1.2, 1.2);  // a straggler in this pipeline, or longer sequences
  EXPECT_TRUE(rank.dropped.empty());
  EXPECT_GE(rank.slow_iterations - before, 990) << "one trial";
  rank.trains(100, 1, 1);  // the slowdown ends
  rank.trains(60, 1, 1.05);
  EXPECT_EQ(rank.dropped.size(), 1U) << "the reference is that of now";
}

TEST(PlanGuard, TheRanksOfAPipelineTryTogether) {
  for (const bool plans_fault : {true, false}) {
    std::vector<GuardedRank> ranks(4);
    const auto iterate = [&](int iterations, double slow) {
      for (int i = 0; i < iterations; ++i) {
        bool plan_runs = false;
        for (const GuardedRank& rank : ranks) plan_runs |= rank.follows();
        // The last computation of each rank ends a little earlier than that of the previous rank.
        for (std::size_t r = 0; r < ranks.size(); ++r) {
          ranks[r].runs((plans_fault && !plan_runs ? 1 : slow) - 0.02 * static_cast<double>(r));
        }
      }
    };
    iterate(10, 1);
    for (GuardedRank& rank : ranks) rank.gets(promise_of(1, 1));
    iterate(50, 1.05);
    for (const GuardedRank& rank : ranks) EXPECT_EQ(rank.dropped.size(), plans_fault ? 1U : 0U);
    for (const GuardedRank& rank : ranks) EXPECT_EQ(rank.follows(), !plans_fault);
  }
}

TEST(PlanGuard, NoiseDropsNoGoodPlanAndHidesNoBadOne) {
  int dropped_good = 0, dropped_bad = 0, trials = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    for (const double slower : {1.0, 1.03}) {
      std::mt19937 random(seed);
      std::normal_distribution<double> noise(0, 0.01);
      const auto times = [&](double s) { return [&noise, &random, s] { return s * (1 + noise(random)); }; };
      GuardedRank rank;
      rank.trains(20, times(1), times(1));
      rank.gets(promise_of(1, 1));
      rank.trains(300, times(1), times(slower));
      if (slower == 1) {
        dropped_good += static_cast<int>(rank.dropped.size());
        trials += 300 - rank.slow_iterations;
      } else {
        dropped_bad += rank.dropped.empty() ? 0 : 1;
      }
    }
  }
  EXPECT_EQ(dropped_good, 0);
  EXPECT_EQ(dropped_bad, 10);
  EXPECT_LT(trials, 10 * 300 / 50) << "iterations that good plans lost to trials";
}

TEST(PlanGuard, AProfilingWindowIsHeldToThirtyPercent) {
  ClockPlan window;
  window.kind = ClockPlan::Kind::profiling_window;
  window.version = 1;
  GuardedRank rank;
  rank.trains(10, 1, 0);
  rank.gets(window);
  rank.trains(20, 1, 1.25);
  EXPECT_TRUE(rank.dropped.empty());
  window.version = 2;
  rank.gets(window);
  rank.trains(20, 1, 1.9);
  EXPECT_EQ(rank.slow_iterations, 22);
  ASSERT_EQ(rank.dropped.size(), 1U);
  EXPECT_EQ(rank.dropped[0].version, 2);
  EXPECT_THAT(rank.dropped[0].text, HasSubstr("profiling window"));
}

TEST(PlanGuard, TheOldPlanDoesNotComeBackWhileTheNextOneIsAwaited) {
  PlanGuard guard(0.01);
  for (int i = 0; i < 5; ++i) guard.take({0, false, true, 1});
  EXPECT_TRUE(guard.arrives(promise_of(1, 4)));
  guard.take({1, false, true, 1});
  ASSERT_TRUE(guard.take_dropped());
  guard.arrives(promise_of(2, 1));  // takes effect at a later iteration
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(guard.holds());
    guard.take({1, false, true, 1});
  }
  guard.take({2, false, true, 1});
  EXPECT_FALSE(guard.holds());
}

TEST(PlanGuard, AStallOfTheHostMovesNoDeviceTimeAndStartsNoTrial) {
  // Two ranks: the first one's loader is late twice in a row, the second one waits for it.
  std::vector<GuardedRank> ranks(2);
  const auto iterate = [&](int iterations, double stall_s) {
    for (int i = 0; i < iterations; ++i) {
      for (GuardedRank& rank : ranks) {
        rank.slow_iterations += rank.follows() ? 1 : 0;
        rank.runs((rank.follows() ? 1.005 : 1) + stall_s, rank.follows() ? 0.8 : 0.7);
      }
    }
  };
  iterate(10, 0);
  for (GuardedRank& rank : ranks) rank.gets(promise_of(1, 1));
  for (int i = 0; i < 50; ++i) {
    iterate(18, 0);
    iterate(2, 0.7);
  }
  for (const GuardedRank& rank : ranks) {
    EXPECT_TRUE(rank.dropped.empty());
    EXPECT_EQ(rank.slow_iterations, 1000);
  }
}

TEST(PlanGuard, AStallWithinComputationsEndsInASecondLook) {
  // A program that times its computations by the host: the stall is in them.
  GuardedRank rank;
  rank.trains(10, 1, 0);
  rank.gets(promise_of(1, 1));
  rank.trains(50, 1, 1);
  rank.trains(2, 15, 15);
  rank.trains(100, 1, 1);
  EXPECT_TRUE(rank.dropped.empty());
  EXPECT_TRUE(rank.follows());
  EXPECT_GE(rank.slow_iterations, 140) << "one trial";
  EXPECT_EQ(rank.guard.take_remark().value_or(""),
            "plan 1 continues: iterations took 15 s under it and 1 s at the highest clock; now they take 1 s under it");
}

TEST(PlanGuard, ADroppedPlanIsTriedAgainAfterOneTwoAndFourMinutes) {
  GuardedRank rank;
  rank.trains(10, 1, 0);
  rank.gets(promise_of(1, 1));
  std::vector<double> dropped_at_s;
  while (rank.trained_s < 1000) {
    rank.trains(1, 1, 1.05);
    if (rank.dropped.size() > dropped_at_s.size()) dropped_at_s.push_back(rank.trained_s);
  }
  ASSERT_GE(dropped_at_s.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) {
    const double pause_s = dropped_at_s[i + 1] - dropped_at_s[i];
    EXPECT_NEAR(pause_s, 60 << i, 25) << i;
    EXPECT_EQ(rank.dropped[i].pause_s, 60 << i);
  }
  rank.trains(3000, 1, 1);
  EXPECT_TRUE(rank.follows()) << "it is as fast as promised now";
}

TEST(PlanGuard, NewVersionsDoNotEscapeJudgment) {
  for (const double slower : {1.05, 1.25, 6.0}) {
    GuardedRank rank;
    rank.trains(10, 1, 0);
    for (int i = 0; i < 3000; ++i) {
      rank.gets(promise_of(i + 1, 1));
      rank.trains(1, 1, slower);
    }
    EXPECT_LE(rank.trained_s, 3000 * 1.01 + 10) << slower;
    EXPECT_LE(rank.dropped.size(), 8U) << slower;
  }
}

TEST(PlanGuard, ASlowVersionAmongGoodOnesCostsNoMoreThanHalfAPercent) {
  for (const int every : {2, 3, 5, 20, 100, 400}) {
    GuardedRank rank;
    rank.trains(10, 1, 0);
    for (int i = 0; i < 6000; ++i) {
      rank.gets(promise_of(i + 1, 1));
      rank.trains(1, 1, i % every == 0 ? 6 : 1);
    }
    EXPECT_LE(rank.trained_s, 6010 * 1.006 + 20) << every;
  }
}

TEST(PlanGuard, WindowsForEverCostNoMoreThanAThousandth) {
  ClockPlan window;
  window.kind = ClockPlan::Kind::profiling_window;
  GuardedRank rank;
  rank.trains(10, 1, 0);
  for (int i = 0; i < 6000; ++i) {
    window.version = i + 1;
    rank.gets(window);
    rank.trains(1, 1, 1.25);
  }
  EXPECT_LE(rank.trained_s, 6010 * 1.001 + 12);
}

TEST(PlanGuard, WindowsAndPlansPayForThemselvesAlone) {
  ClockPlan window;
  window.kind = ClockPlan::Kind::profiling_window;
  for (const bool windows_are_slow : {true, false}) {
    GuardedRank rank;
    rank.trains(10, 1, 0);
    const auto gets_one = [&](bool is_window, std::int64_t version) {
      window.version = version;
      rank.gets(is_window ? window : promise_of(version, 1));
    };
    // Until they have cost ten iterations, and beyond.
    for (int i = 0; i < 200; ++i) {
      gets_one(windows_are_slow, i + 1);
      rank.trains(1, 1, 1.25);
    }
    EXPECT_FALSE(rank.follows());
    gets_one(!windows_are_slow, 1000);
    rank.slow_iterations = 0;
    rank.trains(20, 1, 1);
    EXPECT_GE(rank.slow_iterations, 19) << windows_are_slow;
    gets_one(windows_are_slow, 1001);
    rank.trains(1, 1, 1);
    EXPECT_FALSE(rank.follows()) << "that is no way around the pause";
  }
}

TEST(PlanGuard, IterationsAtAnotherClockAreNoReferenceAndNoPlansFault) {
  GuardedRank rank;
  rank.trains(10, 1, 0);
  rank.gets(promise_of(1, 1));
  rank.trains(50, 1, 1);
  for (int i = 0; i < 40; ++i) rank.runs(1.5, 1.4, true);  // another process has locked the clock
  EXPECT_TRUE(rank.follows());
  rank.trains(60, 1, 1.05);
  EXPECT_EQ(rank.dropped.size(), 1U) << "the reference is still that of the highest clock";
}

TEST(PlanGuard, ANegativeToleranceJudgesNothing) {
  GuardedRank rank(-1);
  rank.gets(promise_of(1, 4));
  rank.trains(100, 1, 40);
  EXPECT_EQ(rank.slow_iterations, 100);
}

TEST(GuardedIteration, KnowsItsPlanAndWhetherAllComputationsRanAtTheHighestClock) {
  Step step;
  step.plan_version = 3;
  step.followed = true;
  step.computations = {{5'100'000'000, 5'400'000'000, 1410, 0, 0, model::Instruction::forward},
                       {5'500'000'000, 6'000'000'000, 900, 0, 0, model::Instruction::backward},
                       {6'000'000'000, 9'000'000'000, 900, 0, 0, model::Instruction::all_reduce}};
  step.count = 3;
  EXPECT_FALSE(guarded_iteration(step, 1410).maximum_clock);
  EXPECT_TRUE(guarded_iteration(step, 1410).followed);
  EXPECT_EQ(guarded_iteration(step, 1410).plan_version, 3);
  step.computations[1].clock = 1410;
  EXPECT_TRUE(guarded_iteration(step, 1410).maximum_clock);
  step.computations[1].clock = 900;
  step.controlled = false;
  EXPECT_TRUE(guarded_iteration(step, 1410).maximum_clock) << "the requested clock was not set";
}

}  // namespace
}  // namespace perseus::client
