#include "server/profiling/online_profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/planner/exact.h"
#include "planning/planner/look_up.h"
#include "planning/planner/realize.h"
#include "server/profiling/plan_uncertainty.h"
#include "server/profiling/profile_estimate.h"
#include "tests/support/plan_loss.h"
#include "tests/support/simulated_job.h"
#include "tests/support/simulated_profile.h"

namespace perseus::profiling {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::SimulatedJob;

model::Schedule small_schedule() { return model::make_schedule("1f1b", {3, 6, 1}).value(); }

SimulatedJob small_job(testing::SimulationOptions options = {}, std::uint64_t seed = 1) {
  return {testing::invented_profile({}, 7), small_schedule(), std::move(options), seed};
}

/// Runs until the profiler is done, or that many windows.
std::string run(OnlineProfiler& profiler, SimulatedJob& job, int most_windows) {
  for (int w = 0; w < most_windows; ++w) {
    const ProfilingStep step = profiler.next();
    if (step.done() != nullptr) return step.done()->why;
    const ProfilingWindow& window = *step.window();
    EXPECT_TRUE(profiler.window_complete());
    EXPECT_TRUE(profiler.hand_out(window).ok());
    EXPECT_FALSE(profiler.window_complete());
    for (const RankResult& result : job.run(window)) {
      const auto rejections = profiler.report(result);
      EXPECT_TRUE(rejections.ok()) << rejections.error().message;
      EXPECT_EQ(rejections->size(), 0U) << rejections->front().message;
    }
  }
  return "";
}

ProfilingWindow next_window(const OnlineProfiler& profiler) { return *profiler.next().window(); }

/// All ranks at these clocks: of forward and of everything else.
ProfilingWindow window_at(const model::Schedule& schedule, int number, int iterations, int forward_mhz, int other_mhz) {
  ProfilingWindow window{number, iterations, false, false, {}};
  for (const auto& actions : schedule.ranks) {
    std::vector<Megahertz>& clocks = window.clocks.emplace_back();
    for (const model::Action& action : actions) {
      clocks.emplace_back(action.instruction == model::Instruction::forward ? forward_mhz : other_mhz);
    }
  }
  return window;
}

TEST(OnlineProfiler, PlainGoesFromTheHighestClockDownOneUniformClockAtATime) {
  SimulatedJob job = small_job();
  ProfilingOptions options;
  options.mode = ProfilingMode::plain;
  options.iterations_per_window = 5;
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), options).value();
  std::vector<int> order;
  for (int w = 0; w < 6; ++w) {
    const ProfilingWindow window = next_window(profiler);
    EXPECT_EQ(window.iterations, 5);
    EXPECT_EQ(window.warm_up, w < 2);
    std::set<int> clocks;
    for (const auto& rank : window.clocks) {
      for (const Megahertz clock : rank) clocks.insert(clock.value());
    }
    ASSERT_EQ(clocks.size(), 1U) << "window " << w;
    order.push_back(*clocks.begin());
    ASSERT_TRUE(profiler.hand_out(window).ok());
    for (const RankResult& result : job.run(window)) ASSERT_TRUE(profiler.report(result).ok());
  }
  EXPECT_THAT(order, ::testing::ElementsAre(1400, 1400, 1400, 1350, 1300, 1250));
}

TEST(OnlineProfiler, PlainStopsAnInstructionWhoseEnergyKeepsRising) {
  model::Profile truth = testing::invented_profile({.clocks = 14}, 7);
  for (model::ProfileEntry& entry : truth.entries) {
    if (entry.instruction != "forward") continue;
    for (std::size_t c = 3; c < entry.measurements.size(); ++c) {
      entry.measurements[c].energy = entry.measurements[2].energy * (1 + 0.05 * static_cast<double>(c));
    }
  }
  SimulatedJob job(truth, small_schedule(), {}, 3);
  ProfilingOptions options;
  options.mode = ProfilingMode::plain;
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), options).value();
  EXPECT_THAT(run(profiler, job, 40), HasSubstr("keeps rising"));
  const ProfileEstimate estimate = profiler.estimate().value();
  for (std::size_t e = 0; e < estimate.sources.size(); ++e) {
    const auto measured = std::ranges::count(estimate.sources[e], ProfileSource::measured);
    EXPECT_EQ(measured, estimate.profile.entries[e].instruction == "forward" ? 8 : 14);
  }
  EXPECT_EQ(for_planning(estimate).find(0, "forward")->measurements.size(), 8U);
}

TEST(OnlineProfiler, AdaptiveFindsAPlanAsGoodAsTheTruths) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  EXPECT_THAT(run(profiler, job, 100), HasSubstr("expected to lose"));
  EXPECT_LT(profiler.iterations_handed_out(), 100);
  const ProfileEstimate estimate = profiler.estimate().value();
  const model::ComputationDag dag =
      model::build_dag(for_planning(estimate), small_schedule(), {estimate.blocking_power, Seconds(0)}).value();
  const model::Plan plan = planner::plan_exact(dag).points.back().plan;
  const model::Frontier best =
      planner::plan_exact(job.dag());  // clocks are tried from the highest down: same option, same clock
  const testing::PlanLoss loss = testing::plan_loss(job.dag(), best, plan, best.points.back().time);
  EXPECT_LT(loss.loss_pct, 0.5);
  EXPECT_LT(loss.late_pct, 0.5);
  EXPECT_GT(profiler.iterations_handed_out(), 1);
}

TEST(OnlineProfiler, RunsThePlanItselfBeforeItStops) {
  SimulatedJob job = small_job();
  ProfilingOptions options;
  options.tolerance_pct = 0.3;
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), options).value();
  std::vector<bool> confirming;
  for (int w = 0; w < 100; ++w) {
    const ProfilingStep step = profiler.next();
    if (step.done() != nullptr) break;
    confirming.push_back(step.window()->confirming);
    ASSERT_TRUE(profiler.hand_out(*step.window()).ok());
    for (const RankResult& result : job.run(*step.window())) ASSERT_TRUE(profiler.report(result).ok());
  }
  ASSERT_GT(confirming.size(), 4U);
  EXPECT_FALSE(confirming.front());
  // At the time of the highest clock and at 1.2 of it, twice, one after the other.
  for (std::size_t last = 1; last <= 4; ++last) EXPECT_TRUE(confirming[confirming.size() - last]);
}

/// Two stages, the second with more work, at four clocks far apart.
model::Profile coarse_profile() {
  model::Profile profile;
  profile.accelerators = {1, 1};
  for (const int stage : {0, 1}) {
    for (const auto& [instruction, time_s] : {std::pair("forward", 0.01), std::pair("backward", 0.02)}) {
      model::ProfileEntry entry{stage, instruction, {}};
      for (const int mhz : {1400, 1200, 1000, 800}) {
        const double share = mhz / 1400.0, t = (1 + 0.5 * stage) * time_s / share;
        entry.measurements.push_back(
            {Megahertz(mhz), Seconds(t), Joules(t * (100 + 200 * share * share * share)), {}, {}, 1});
      }
      profile.entries.push_back(std::move(entry));
    }
  }
  return profile;
}

TEST(OnlineProfiler, TriesLowerClocksAgainWhereTheFirstSamplesWereRejected) {
  SimulatedJob job(coarse_profile(), model::make_schedule("1f1b", {2, 4, 1}).value(), {}, 1);
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  int rejected = 0, windows = 0;
  for (; windows < 100; ++windows) {
    const ProfilingStep step = profiler.next();
    if (step.done() != nullptr) break;
    const ProfilingWindow& window = *step.window();
    ASSERT_TRUE(profiler.hand_out(window).ok());
    const bool lower = std::ranges::any_of(window.clocks[0], [](Megahertz clock) { return clock < Megahertz(1400); });
    for (RankResult& result : job.run(window)) {
      if (result.rank == 0 && lower && rejected == 0) {
        result.throttled.assign(result.iteration_time.size(), true);
        ++rejected;
      }
      ASSERT_TRUE(profiler.report(result).ok());
    }
  }
  ASSERT_EQ(rejected, 1);
  EXPECT_LT(windows, 100);
  const model::Profile planned = for_planning(profiler.estimate().value());
  for (const char* instruction : {"forward", "backward"}) {
    EXPECT_GT(planned.find(0, instruction)->measurements.size(), 1U) << instruction << " has time to spare";
  }
}

TEST(OnlineProfiler, AnUnknownTimeIsLeftOutAlone) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  const ProfilingWindow window = next_window(profiler);
  ASSERT_TRUE(profiler.hand_out(window).ok());
  std::vector<Rejection> rejections;
  for (RankResult& result : job.run(window)) {
    if (result.rank == 1) result.time_s["forward"][0][2] = result.energy_j["forward"][0][2] = 0;
    const std::vector<Rejection> rejected = profiler.report(result).value();
    rejections.insert(rejections.end(), rejected.begin(), rejected.end());
  }
  ASSERT_EQ(rejections.size(), 1U);
  EXPECT_THAT(rejections[0].message, HasSubstr("forward 2: its time at 1400 MHz is not known"));
  const ProfileEstimate estimate = profiler.estimate().value();
  EXPECT_EQ(estimate.profile.find(1, "forward")->measurements.front().samples, 5) << "of six microbatches";
  EXPECT_EQ(estimate.profile.find(0, "forward")->measurements.front().samples, 6);
}

TEST(OnlineProfiler, ComputationsOfARankShareClocksThatArriveTooLateForOne) {
  SimulatedJob job(coarse_profile(), model::make_schedule("1f1b", {2, 4, 1}).value(), {}, 1);
  ProfilingJob slow_clocks = job.job();
  slow_clocks.switch_latency = Seconds(0.008);
  OnlineProfiler profiler = OnlineProfiler::create(std::move(slow_clocks), {}).value();
  int windows = 0, lower = 0;
  for (; windows < 100; ++windows) {
    const ProfilingStep step = profiler.next();
    if (step.done() != nullptr) break;
    for (const std::vector<Megahertz>& clocks : step.window()->clocks) {
      EXPECT_EQ(std::set<Megahertz>(clocks.begin(), clocks.end()).size(), 1U);
      lower += clocks.front() < Megahertz(1400) ? 1 : 0;
    }
    ASSERT_TRUE(profiler.hand_out(*step.window()).ok());
    for (const RankResult& result : job.run(*step.window())) ASSERT_TRUE(profiler.report(result).ok());
  }
  EXPECT_LT(windows, 100);
  EXPECT_GT(lower, 2);
  EXPECT_GT(for_planning(profiler.estimate().value()).find(0, "forward")->measurements.size(), 1U);
}

/// Slowdown of an iteration at the window's clocks, without noise.
double true_slowdown_pct(const model::ComputationDag& truth, const ProfilingWindow& window) {
  model::Plan plan(truth.computations.size());
  for (std::size_t rank = 0; rank < truth.rank_order.size(); ++rank) {
    for (std::size_t a = 0; a < truth.rank_order[rank].size(); ++a) {
      const int c = truth.rank_order[rank][a];
      const auto& options = truth.type_of(c).options;
      plan[c] = static_cast<std::uint16_t>(
          std::ranges::find(options, window.clocks[rank][a], &model::Measurement::clock) - options.begin());
    }
  }
  return 100 * (planner::Realizer(truth).realize(plan).time /
                    planner::Realizer(truth).realize(model::Plan(plan.size())).time -
                1);
}

struct Phase {
  int windows = 0, iterations = 0;
  double worst_pct = 0, worst_mean_pct = 0;  ///< the mean at any moment
  std::string why;
};
Phase run_phase(OnlineProfiler& profiler, SimulatedJob& job, bool throttles = false) {
  Phase phase;
  double sum_pct = 0;
  while (phase.windows < 200) {
    const ProfilingStep step = profiler.next();
    if (step.done() != nullptr) {
      phase.why = step.done()->why;
      break;
    }
    const ProfilingWindow window = *step.window();
    const double slower_pct = true_slowdown_pct(job.dag(), window);
    ++phase.windows;
    phase.iterations += window.rest + window.iterations;
    sum_pct += slower_pct * window.iterations;
    phase.worst_pct = std::max(phase.worst_pct, slower_pct);
    phase.worst_mean_pct = std::max(phase.worst_mean_pct, sum_pct / phase.iterations);
    EXPECT_TRUE(profiler.hand_out(window).ok());
    for (RankResult& result : job.run(window)) {
      if (throttles) result.throttled.assign(result.iteration_time.size(), true);
      EXPECT_TRUE(profiler.report(result).ok());
    }
  }
  return phase;
}

TEST(OnlineProfiler, NoIterationAndNoMeanIsSlowerThanTheBudgetAllows) {
  for (const double mean_pct : {2.0, 5.0}) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      ProfilingOptions options;
      options.mean_slowdown_pct = mean_pct;
      options.worst_slowdown_pct = 15;
      options.seed = seed;
      SimulatedJob job(testing::invented_profile({}, seed), small_schedule(), {}, seed);
      OnlineProfiler profiler = OnlineProfiler::create(job.job(), options).value();
      const Phase phase = run_phase(profiler, job);
      EXPECT_LE(phase.worst_pct, 15) << seed;
      EXPECT_LE(phase.worst_mean_pct, mean_pct * 1.02) << seed;
      EXPECT_GT(phase.worst_pct, 0);
      EXPECT_THAT(phase.why, HasSubstr("expected to lose"));
    }
  }
}

TEST(OnlineProfiler, StopsByItselfThoughValuesVaryByTwoPercent) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    testing::SimulationOptions noisy;
    noisy.noise = 0.02;
    SimulatedJob job(testing::invented_profile({}, seed), small_schedule(), noisy, seed);
    OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
    EXPECT_LT(run_phase(profiler, job).windows, 60) << seed;
  }
}

/// The top clocks all take equally long, and the lower of them need less energy.
model::Profile with_equal_times_at_the_top(int clocks) {
  model::Profile profile = testing::invented_profile({}, 7);
  for (model::ProfileEntry& entry : profile.entries) {
    for (int c = 0; c < clocks; ++c) entry.measurements[c].time = entry.measurements[0].time;
  }
  return profile;
}

TEST(OnlineProfiler, StopsByItselfWhereSeveralClocksAtTheTopTakeAsLong) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SimulatedJob job(with_equal_times_at_the_top(4), small_schedule(), {}, seed);
    OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
    const Phase phase = run_phase(profiler, job);
    EXPECT_LT(phase.windows, 60) << seed;
    EXPECT_THAT(phase.why, HasSubstr("expected to lose"));
  }
}

TEST(OnlineProfiler, EveryFourthWindowRunsAtTheHighestClock) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  int lower = 0;
  for (int w = 0; w < 12; ++w) {
    const ProfilingWindow window = next_window(profiler);
    const bool at_highest = std::ranges::all_of(window.clocks, [](const std::vector<Megahertz>& clocks) {
      return std::ranges::all_of(clocks, [](Megahertz clock) { return clock == Megahertz(1400); });
    });
    if (!window.confirming && window.number % 4 == 0) { EXPECT_TRUE(at_highest) << window.number; }
    lower += at_highest ? 0 : 1;
    ASSERT_TRUE(profiler.hand_out(window).ok());
    for (const RankResult& result : job.run(window)) ASSERT_TRUE(profiler.report(result).ok());
  }
  EXPECT_GE(lower, 7);
}

TEST(PlanUncertainty, TheQuantileOfNothingIsZero) { EXPECT_EQ(quantile({}, 0.9), 0); }

TEST(OnlineProfiler, AsksNoMoreThanSixtyIterations) {
  testing::SimulationOptions noisy;
  noisy.noise = 0.03;
  SimulatedJob job = small_job(noisy);
  ProfilingOptions options;
  options.tolerance_pct = 1e-6;
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), options).value();
  const Phase phase = run_phase(profiler, job);
  EXPECT_EQ(phase.windows, 60) << "what it expects to lose is not within the tolerance";
  EXPECT_THAT(phase.why, AllOf(HasSubstr("the limit of 60 iterations"), HasSubstr("expected to lose")));
}

TEST(OnlineProfiler, APowerCapThatThrottlesEveryIterationEndsAllTheSame) {
  SimulatedJob job(with_equal_times_at_the_top(4), small_schedule(), {}, 1);
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  const Phase phase = run_phase(profiler, job, true);
  EXPECT_LT(phase.windows, 60) << phase.why;
  EXPECT_TRUE(profiler.estimate().ok());
  EXPECT_THAT(phase.why, HasSubstr("expected to lose"));
}

TEST(OnlineProfiler, AWindowOfWhichNothingWasMeasuredIsOverToo) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  ASSERT_TRUE(profiler.hand_out(next_window(profiler)).ok());
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(profiler.miss(rank, 0, 0).ok());
  EXPECT_TRUE(profiler.window_complete());
  EXPECT_THAT(profiler.miss(1, 0, 0).error().message, HasSubstr("has reported window 0 before"));
  EXPECT_EQ(next_window(profiler).number, 1);
}

TEST(OnlineProfiler, TakesAsManyIterationsAsAClientHasRun) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  ProfilingWindow window = next_window(profiler);
  ASSERT_TRUE(profiler.hand_out(window).ok());
  window.iterations = 3;
  for (const RankResult& result : job.run(window)) {
    ASSERT_TRUE(profiler.check(result).ok());
    ASSERT_TRUE(profiler.report(result).ok());
    EXPECT_FALSE(profiler.check(result).ok()) << "it came before";
  }
  EXPECT_TRUE(profiler.window_complete());
}

TEST(OnlineProfiler, ClocksVaryWithinAnIteration) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  for (const std::vector<Megahertz>& rank : next_window(profiler).clocks) {
    for (const Megahertz clock : rank) EXPECT_EQ(clock, Megahertz(1400)) << "what all else is compared with";
  }
  run(profiler, job, 1);
  for (const auto& rank : next_window(profiler).clocks) {
    const std::set<Megahertz> distinct(rank.begin(), rank.end());
    EXPECT_GE(distinct.size(), 3U);
  }
}

TEST(OnlineProfiler, StartsAgainWhereItsLogEnds) {
  SimulatedJob job = small_job();
  OnlineProfiler first = OnlineProfiler::create(job.job(), {}).value();
  OnlineProfiler again = OnlineProfiler::create(job.job(), {}).value();
  for (int w = 0; w < 3; ++w) {
    const ProfilingWindow window = next_window(first);
    ASSERT_TRUE(first.hand_out(window).ok());
    ASSERT_TRUE(again.hand_out(window).ok());
    for (const RankResult& result : job.run(window)) {
      ASSERT_TRUE(first.report(result).ok());
      ASSERT_TRUE(again.report(result).ok());
    }
  }
  EXPECT_EQ(next_window(first).clocks, next_window(again).clocks);
  EXPECT_EQ(first.estimate()->profile.entries[1].measurements[2].energy,
            again.estimate()->profile.entries[1].measurements[2].energy);
}

TEST(OnlineProfiler, NothingOfAThrottledIterationIsUsed) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  const ProfilingWindow window = window_at(small_schedule(), 0, 2, 1400, 1300);
  ASSERT_TRUE(profiler.hand_out(window).ok());
  std::vector<RankResult> results = job.run(window);
  for (double& time : results[1].time_s["forward"][1]) time *= 1.2;
  results[1].throttled = {false, true};
  for (const RankResult& result : results) {
    const auto rejections = profiler.report(result);
    ASSERT_TRUE(rejections.ok());
    ASSERT_EQ(rejections->size(), result.rank == 1 ? 1U : 0U);
    if (result.rank != 1) continue;
    EXPECT_EQ(rejections->front().iteration, 1);
    EXPECT_THAT(rejections->front().message, HasSubstr("rank 1, window 0, iteration 1: throttled"));
  }
  const ProfileEstimate estimate = profiler.estimate().value();
  EXPECT_EQ(estimate.profile.find(1, "forward")->measurements[0].samples, 6);
  EXPECT_EQ(estimate.profile.find(0, "forward")->measurements[0].samples, 12);
}

TEST(OnlineProfiler, AnOutlierIsExcludedAndReported) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  for (int w = 0; w < 2; ++w) {
    const ProfilingWindow window = window_at(small_schedule(), w, 2, 1400, 1300);
    ASSERT_TRUE(profiler.hand_out(window).ok());
    std::vector<RankResult> results = job.run(window);
    if (w == 1) results[2].time_s["forward"][1][4] *= 1.15;
    for (const RankResult& result : results) {
      const auto rejections = profiler.report(result);
      ASSERT_TRUE(rejections.ok()) << rejections.error().message;
      ASSERT_EQ(rejections->size(), w == 1 && result.rank == 2 ? 1U : 0U);
      if (rejections->empty()) continue;
      const Rejection& rejection = rejections->front();
      EXPECT_EQ(rejection.occurrence, 4);
      EXPECT_DOUBLE_EQ(rejection.value, result.time_s.at("forward")[1][4]);
      EXPECT_THAT(rejection.message, HasSubstr("rank 2, window 1, iteration 1: forward 4 of stage 2 at 1400 MHz took"));
      EXPECT_THAT(rejection.message, HasSubstr("was expected"));
    }
  }
}

TEST(OnlineProfiler, AnIterationShorterThanItsComputationsIsLeftOut) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  const ProfilingWindow window = window_at(small_schedule(), 0, 1, 1400, 1300);
  ASSERT_TRUE(profiler.hand_out(window).ok());
  RankResult result = job.run(window).front();
  result.iteration_time[0] = result.iteration_time[0] * 0.3;
  const auto rejections = profiler.report(result);
  ASSERT_TRUE(rejections.ok());
  ASSERT_EQ(rejections->size(), 1U);
  EXPECT_THAT(rejections->front().message, HasSubstr("its computations take"));
  EXPECT_THAT(profiler.estimate().error().message, HasSubstr("forward of stage 0"));
}

TEST(OnlineProfiler, ImpossibleEnergiesAreLeftOut) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  const ProfilingWindow window = window_at(small_schedule(), 0, 2, 1400, 1300);
  ASSERT_TRUE(profiler.hand_out(window).ok());
  RankResult result = job.run(window).front();
  result.energy_j["forward"][0][0] = 10'001 * result.time_s["forward"][0][0];
  result.iteration_energy[1] = Joules(10'001 * result.iteration_time[1].value());
  const auto rejections = profiler.report(result);
  ASSERT_TRUE(rejections.ok());
  std::vector<std::string> messages;
  for (const Rejection& rejection : *rejections) messages.push_back(rejection.message);
  EXPECT_THAT(messages, Contains(AllOf(HasSubstr("iteration 0: forward 0: "), HasSubstr("(10 kW)"))));
  EXPECT_THAT(messages, Contains(AllOf(HasSubstr("iteration 1: iter_energy "), HasSubstr("(10 kW)"))));
}

TEST(OnlineProfiler, FirstResultsThatWereThrottledAreDroppedInTheEnd) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  bool dropped = false;
  for (int w = 0; w < 5; ++w) {
    const ProfilingWindow window = window_at(small_schedule(), w, 1, 1400, 1400);
    ASSERT_TRUE(profiler.hand_out(window).ok());
    for (RankResult& result : job.run(window)) {
      if (w == 0) {
        for (double& time : result.time_s["forward"][0]) time *= 1.4;
        result.iteration_time[0] = result.iteration_time[0] * 1.4;
      }
      const auto rejections = profiler.report(result);
      ASSERT_TRUE(rejections.ok());
      for (const Rejection& rejection : *rejections) {
        dropped = dropped || rejection.message.find("are discarded") != std::string::npos;
      }
    }
  }
  EXPECT_TRUE(dropped);
  const double seen = profiler.estimate()->profile.find(1, "forward")->measurements[0].time.value();
  const double truth = testing::invented_profile({}, 7).find(1, "forward")->measurements[0].time.value();
  EXPECT_NEAR(seen / truth, 1, 0.02);
}

/// Samples of a clock were replaced by those of others that let expect another time there.
TEST(OnlineProfiler, AClockIsAsSlowAsItsOwnSamplesSayWhateverOthersLetExpect) {
  model::Profile truth = testing::invented_profile({}, 7);
  for (model::ProfileEntry& entry : truth.entries) {
    if (entry.stage == 1) entry.measurements[0].time = 1.4 * entry.measurements[0].time;
  }
  SimulatedJob job(truth, small_schedule(), {}, 1);
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  const auto run_at = [&](int forward_mhz, int other_mhz) {
    const ProfilingWindow window =
        window_at(small_schedule(), profiler.windows_handed_out(), 1, forward_mhz, other_mhz);
    ASSERT_TRUE(profiler.hand_out(window).ok());
    for (const RankResult& result : job.run(window)) ASSERT_TRUE(profiler.report(result).ok());
  };
  run_at(1400, 1400);
  for (const int mhz : {1300, 1250, 1300, 1250, 1300, 1250}) run_at(mhz, mhz);
  for (int w = 0; w < 3; ++w) run_at(1400, 1400);
  const model::Profile seen = profiler.estimate()->profile;
  for (const char* instruction : {"forward", "backward"}) {
    for (const std::size_t c : {0U, 2U, 3U}) {
      const model::Measurement& m = seen.find(1, instruction)->measurements[c];
      EXPECT_NEAR(m.time / truth.find(1, instruction)->measurements[c].time, 1, 0.02) << instruction << " " << c;
      EXPECT_GE(m.samples, 6) << instruction << " " << c;
    }
  }
}

/// A stage with other layers was compared with the other ones at all clocks, and its samples were rejected for ever.
TEST(OnlineProfiler, AStageWhoseEnergyFallsLessThanThatOfOthersIsSampledAtItsLowClocks) {
  model::Profile truth = testing::invented_profile({}, 7);
  for (model::ProfileEntry& entry : truth.entries) {
    if (entry.stage != 2) continue;
    for (model::Measurement& m : entry.measurements) m.energy = std::pow(1400.0 / m.clock.value(), 0.6) * m.energy;
  }
  for (const std::vector<int>& lower : {std::vector{1250, 1100, 1000}, std::vector{1000, 1000}}) {
    SimulatedJob job(truth, small_schedule(), {}, 1);
    OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
    const auto run_at = [&](int mhz) {
      const ProfilingWindow window = window_at(small_schedule(), profiler.windows_handed_out(), 1, mhz, mhz);
      ASSERT_TRUE(profiler.hand_out(window).ok());
      for (const RankResult& result : job.run(window)) ASSERT_TRUE(profiler.report(result).ok());
    };
    run_at(1400);
    for (const int mhz : lower) run_at(mhz);
    const ProfileEstimate seen = profiler.estimate().value();
    for (std::size_t e = 0; e < seen.profile.entries.size(); ++e) {
      const model::ProfileEntry& entry = seen.profile.entries[e];
      for (std::size_t c = 0; c < entry.measurements.size(); ++c) {
        const model::Measurement& m = entry.measurements[c];
        if (std::ranges::find(lower, m.clock.value()) == lower.end()) continue;
        EXPECT_EQ(seen.sources[e][c], ProfileSource::measured) << entry.stage << entry.instruction << m.clock.value();
        const auto& exact = truth.find(entry.stage, entry.instruction)->measurements[c];
        EXPECT_NEAR(m.energy / exact.energy, 1, 0.03) << entry.stage << entry.instruction << m.clock.value();
      }
    }
  }
}

TEST(OnlineProfiler, ResultsThatMakeNoSenseChangeNothing) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  const ProfilingWindow window = next_window(profiler);
  ASSERT_TRUE(profiler.hand_out(window).ok());
  const std::vector<RankResult> good = job.run(window);
  const auto error_of = [&](auto change) {
    RankResult bad = good[0];
    change(bad);
    const auto result = profiler.report(bad);
    return result.ok() ? "accepted" : result.error().message;
  };
  EXPECT_THAT(error_of([](RankResult& r) { r.rank = 3; }), HasSubstr("rank 3; must be 0 to 2"));
  EXPECT_THAT(error_of([](RankResult& r) { r.replica = 1; }), HasSubstr("replica 1 of rank 0; must be 0 to 0"));
  EXPECT_THAT(error_of([](RankResult& r) { r.window = 1; }), HasSubstr("window 1; 1 were handed out"));
  EXPECT_THAT(error_of([](RankResult& r) { r.iteration_time.clear(); }), HasSubstr("iter_time has 0 iterations"));
  EXPECT_THAT(error_of([](RankResult& r) { r.time_s.erase("backward"); }), HasSubstr("lacks backward"));
  EXPECT_THAT(error_of([](RankResult& r) { r.time_s["forward"][0].pop_back(); }),
              HasSubstr("5 values; the rank runs it 6"));
  EXPECT_THAT(error_of([](RankResult& r) { r.time_s["high"] = {{1.0}}; }), HasSubstr("no instruction 'high'"));
  EXPECT_FALSE(profiler.estimate().ok());
  ASSERT_TRUE(profiler.report(good[0]).ok());
  EXPECT_THAT(error_of([](RankResult&) {}), HasSubstr("has reported window 0 before"));
}

TEST(OnlineProfiler, JobsThatMakeNoSenseAreRefused) {
  const auto error_of = [](auto change) {
    ProfilingJob job = small_job().job();
    ProfilingOptions options;
    change(job, options);
    const auto result = OnlineProfiler::create(std::move(job), options);
    return result.ok() ? "accepted" : result.error().message;
  };
  EXPECT_THAT(error_of([](auto& job, auto&) { job.clocks.pop_back(); }), HasSubstr("clocks of 2 stages"));
  EXPECT_THAT(error_of([](auto& job, auto&) { job.clocks[1].clear(); }), HasSubstr("stage 1 has no supported clock"));
  EXPECT_THAT(error_of([](auto& job, auto&) { std::ranges::reverse(job.clocks[2]); }), HasSubstr("highest first"));
  EXPECT_THAT(error_of([](auto& job, auto&) { job.replicas = {1, 0, 1}; }), HasSubstr("0 replicas"));
  EXPECT_THAT(error_of([](auto&, auto& options) { options.slowdowns = {0.5}; }), HasSubstr("slowdown 0.5"));
  EXPECT_THAT(error_of([](auto&, auto& options) { options.iterations_per_window = 0; }), HasSubstr("must be >= 1"));
}

TEST(OnlineProfiler, MergedReplicasAreAsSlowAsTheSlowestAndNeedTheSum) {
  testing::SimulationOptions options;
  options.replica_slowness = {1, 1.05, 1};
  SimulatedJob job = small_job(options);
  OnlineProfiler profiler = OnlineProfiler::create(job.job(), {}).value();
  for (int w = 0; w < 4; ++w) {
    const ProfilingWindow window = window_at(small_schedule(), w, 4, 1400, 1300);
    ASSERT_TRUE(profiler.hand_out(window).ok());
    for (const RankResult& result : job.run(window)) ASSERT_TRUE(profiler.report(result).ok());
  }
  const model::Profile truth = testing::invented_profile({}, 7);
  const ProfileEstimate estimate = profiler.estimate().value();
  EXPECT_EQ(estimate.profile.accelerators, (std::vector{3, 3, 3}));
  for (int stage = 0; stage < 3; ++stage) {
    const model::Measurement& seen = estimate.profile.find(stage, "forward")->measurements[0];
    const model::Measurement& one = truth.find(stage, "forward")->measurements[0];
    EXPECT_NEAR(seen.time / one.time, 1.05, 0.01);
    EXPECT_NEAR(seen.energy / one.energy, 3, 0.03);
  }
}

// A rank may report anything: values that a double can just hold must not end the server.
TEST(OnlineProfiler, ReportsOfAnySizeEndNothing) {
  for (const double size : {1e300, 1e150, 1e18, 1e-18, 1e-150, 1e-300}) {
    SimulatedJob job = small_job();
    auto profiler = OnlineProfiler::create(job.job(), {}).value();
    for (int w = 0; w < 6; ++w) {
      const ProfilingStep step = profiler.next();
      if (step.done() != nullptr) break;
      const ProfilingWindow& window = *step.window();
      EXPECT_GE(window.rest, 0);
      ASSERT_TRUE(profiler.hand_out(window).ok());
      for (RankResult result : job.run(window)) {
        if (w > 0 && result.rank == w % 3) {
          for (Seconds& time : result.iteration_time) time = time * size;
          for (auto& [name, rows] : result.time_s) {
            for (auto& row : rows) {
              for (double& value : row) value *= size;
            }
          }
        }
        (void)profiler.report(result);
      }
    }
  }
}

TEST(OnlineProfiler, BlockingPowerIsEstimatedFromWaits) {
  SimulatedJob job = small_job();
  OnlineProfiler profiler = OnlineProfiler::create(job.job(false), {}).value();
  run(profiler, job, 3);
  const ProfileEstimate estimate = profiler.estimate().value();
  EXPECT_NEAR(estimate.blocking_power.value(), 83.64, 1e-6);
}

TEST(OnlineProfiler, ASearchCanBeStoppedAndChangesNothing) {
  SimulatedJob job = small_job();
  auto profiler = OnlineProfiler::create(job.job()).value();
  EXPECT_EQ(run(profiler, job, 4), "");
  for (const long interval : {1L, 1000L, 100000L}) {
    int asked = 0;
    StopCheck second([&] { return ++asked == 2; }, interval);
    const auto stopped = profiler.next(second);
    EXPECT_EQ(stopped.has_value(), asked < 2) << interval;
    EXPECT_LE(asked, 2) << "it is not asked again";
  }
  StopCheck never;
  const auto found = profiler.next(never);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->window()->clocks, next_window(profiler).clocks);
}

}  // namespace
}  // namespace perseus::profiling
