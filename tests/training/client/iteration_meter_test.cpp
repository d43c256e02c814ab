// From recorded steps and a counter to measured iterations, against the simulated truth, on a hand-turned clock.
#include "training/client/iteration_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/training/client/hand_turned_rank.h"
#include "training/device/gpu.h"

namespace perseus::client {
namespace {

constexpr int not_supported = 3, unknown_error = 999;  // NVML's codes
const std::string read_counter = "nvmlDeviceGetTotalEnergyConsumption";

void iterate(HandTurnedRank& rank) {
  rank.begin_step();
  for (int i = 0; i < 2; ++i) rank.compute(model::Instruction::forward);
  for (int i = 0; i < 2; ++i) rank.compute(model::Instruction::backward);
  rank.end_step();
}

TEST(IterationMeter, EnergiesComeWithinHalfASecondForEveryCounter) {
  for (const double refresh_s : {0.01, 0.02, 0.05, 0.1}) {
    HandTurnedRank rank(two_computations(0.005, refresh_s));
    const double began_s = rank.now_s;
    while (rank.meter->facts().last_iteration_j < 0 && rank.now_s < began_s + 10) iterate(rank);
    EXPECT_LT(rank.now_s - began_s, 0.5) << refresh_s;
    for (int i = 0; i < 200; ++i) iterate(rank);
    const double truth_j = 2 * 0.005 * 300 + 2 * 0.01 * 340;
    ASSERT_GT(rank.measured.size(), 100U);
    EXPECT_NEAR(rank.measured.back().energy_j, truth_j, 0.02 * truth_j) << refresh_s;
  }
}

TEST(IterationMeter, ATransientCounterFailureIsLoggedOnceAndRecovers) {
  HandTurnedRank rank(two_computations(0.005, 0.02));
  for (int i = 0; i < 100; ++i) iterate(rank);
  const double before_j = rank.meter->facts().last_iteration_j;
  ASSERT_GT(before_j, 0);
  for (const double fails_for_s : {0.1, 1.0, 10.0}) {
    rank.gpu->inject(read_counter, unknown_error, -1);
    for (const double until_s = rank.now_s + fails_for_s; rank.now_s < until_s;) iterate(rank);
    EXPECT_EQ(rank.said.count("energy is not measured"), 1);
    ASSERT_EQ(rank.complaints.all().size(), 1U);
    EXPECT_EQ(rank.complaints.all()[0].cause, Cause::energy);

    rank.gpu->inject(read_counter, 0, 0);
    const double back_s = rank.now_s;
    while (rank.complaints.raised(Cause::energy) && rank.now_s < back_s + 20) iterate(rank);
    EXPECT_LT(rank.now_s - back_s, std::min(fails_for_s, 5.0) + 0.1) << fails_for_s;  // the retry interval grows to 5 s
    EXPECT_EQ(rank.said.count("energy is measured again"), 1);
    const double noticed_s = rank.now_s;
    rank.measured.clear();
    const auto right = [&] {
      return !rank.measured.empty() && std::abs(rank.measured.back().energy_j - before_j) < 0.02 * before_j;
    };
    while (!right() && rank.now_s < noticed_s + 20) iterate(rank);
    EXPECT_LT(rank.now_s - noticed_s, 1) << fails_for_s;
    rank.said.forget();
  }
}

TEST(IterationMeter, AnEndedWindowIsReportedEvenIfIncomplete) {
  HandTurnedRank rank(two_computations(0.005, 0.02));
  for (int i = 0; i < 100; ++i) iterate(rank);
  rank.measured.clear();
  const auto window = [&](int number, const std::vector<bool>& followed) {
    for (const bool follows : followed) {
      rank.begin_step(number, static_cast<int>(followed.size()));
      rank.step().window_ends = true;
      rank.step().followed = follows;
      rank.compute(model::Instruction::forward);
      rank.end_step();
    }
    for (int i = 0; i < 20; ++i) iterate(rank);
    std::vector<MeasuredIteration> of_window;
    for (const MeasuredIteration& i : rank.measured) {
      if (i.window == number) of_window.push_back(i);
    }
    return of_window;
  };
  const auto whole = window(0, {true, true});
  ASSERT_EQ(whole.size(), 2U);
  EXPECT_TRUE(!whole[0].ends_window && whole[1].ends_window && whole[1].missed.empty());
  const auto partly = window(1, {true, false});
  ASSERT_EQ(partly.size(), 2U);
  EXPECT_TRUE(partly[0].missed.empty() && partly[1].ends_window);
  EXPECT_THAT(iterations_body(3, partly), ::testing::Not(::testing::HasSubstr("missed")));
  const auto none = window(2, {false, false});
  ASSERT_EQ(none.size(), 1U);
  EXPECT_TRUE(none[0].ends_window);
  EXPECT_THAT(iterations_body(3, none),
              ::testing::HasSubstr(R"("missed":"the rank did not follow the window's clocks","iteration_time_s":[]})"));
}

TEST(IterationMeter, AWindowsComputationsHaveTheTimesAtWhichTheyRan) {
  HandTurnedRank rank(two_computations(0.005, 0.02));
  for (int i = 0; i < 100; ++i) iterate(rank);
  rank.measured.clear();
  rank.begin_step(0, 1);
  const double began_s = rank.now_s;
  std::vector<std::pair<double, double>> truth;
  for (const model::Instruction instruction :
       {model::Instruction::forward, model::Instruction::forward, model::Instruction::backward}) {
    rank.wait(0.003);
    const double from_s = rank.now_s - began_s;
    rank.compute(instruction);
    truth.emplace_back(from_s, rank.now_s - began_s);
  }
  rank.end_step();
  for (int i = 0; i < 100; ++i) iterate(rank);
  const auto window = std::ranges::find(rank.measured, 0, &MeasuredIteration::window);
  ASSERT_NE(window, rank.measured.end());
  ASSERT_EQ(window->computations.size(), truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    EXPECT_NEAR(window->computations[i].begin_s, truth[i].first, 1e-6);
    EXPECT_NEAR(window->computations[i].end_s, truth[i].second, 1e-6);
  }
}

TEST(IterationMeter, ThrottlingIsSeenWithoutACounter) {
  HandTurnedRank rank(two_computations(0.002, 0.1));  // some eight iterations between two readings
  rank.gpu->inject(read_counter, not_supported, -1);
  const auto throttled = [&] {
    rank.measured.clear();
    for (int i = 0; i < 100; ++i) iterate(rank);
    rank.wait(0.11);  // until the next reading
    rank.collect();
    return std::ranges::count_if(rank.measured, &MeasuredIteration::throttled);
  };
  EXPECT_EQ(throttled(), 0);
  EXPECT_EQ(rank.measured.size(), 100U);
  rank.gpu->set_power_limit(Watts(220));
  EXPECT_GE(throttled(), 90);
  EXPECT_EQ(rank.measured.size(), 100U);
  EXPECT_LT(rank.measured.back().energy_j, 0);
  rank.gpu->set_power_limit(Watts(1000));
  EXPECT_LE(throttled(), 10);
}

/// Shows 60 to 200 MHz less than was set, as limits of AMD are soft.
class SoftClock final : public device::ForwardingGpu {
 public:
  SoftClock(std::unique_ptr<device::Gpu> gpu, bool amd)
      : ForwardingGpu(std::move(gpu)), identity_(ForwardingGpu::identity()) {
    identity_.amd = amd;
  }
  [[nodiscard]] const device::GpuIdentity& identity() const override { return identity_; }
  device::DeviceResult<Megahertz> clock() override {
    off_ = off_ == 60 ? 200 : 60;
    return Megahertz(ForwardingGpu::clock()->value() - off_);
  }

 private:
  device::GpuIdentity identity_;
  int off_ = 60;
};

/// Counts the driver's calls; the counter's may be slow.
class CountedGpu final : public device::ForwardingGpu {
 public:
  CountedGpu(std::unique_ptr<device::Gpu> gpu, double& now_s, int& calls, double energy_call_s)
      : ForwardingGpu(std::move(gpu)), now_s_(now_s), calls_(calls), energy_call_s_(energy_call_s) {}
  device::DeviceResult<Joules> energy() override {
    now_s_ += energy_call_s_;
    return ++calls_, ForwardingGpu::energy();
  }
  device::DeviceResult<Megahertz> clock() override { return ++calls_, ForwardingGpu::clock(); }
  device::DeviceResult<Watts> power() override { return ++calls_, ForwardingGpu::power(); }
  device::DeviceResult<Watts> power_limit() override { return ++calls_, ForwardingGpu::power_limit(); }
  device::DeviceResult<device::ClockEvents> clock_events() override { return ++calls_, ForwardingGpu::clock_events(); }

 private:
  double& now_s_;
  int& calls_;
  double energy_call_s_;
};

/// In each second: wake-ups of the thread that looks, and calls of the driver.
struct Looks {
  double wakeups = 0, calls = 0;
};
Looks looks_within(HandTurnedRank& rank, int& wakeups, int& calls, double seconds) {
  wakeups = calls = 0;
  for (const double until_s = rank.now_s + seconds; rank.now_s < until_s;) iterate(rank);
  return {wakeups / seconds, calls / seconds};
}

TEST(IterationMeter, WakesUpSeldomInEveryState) {
  for (const bool slow_calls : {false, true}) {
    HandTurnedRank rank(two_computations(0.02, 0.1));
    int wakeups = 0, calls = 0;
    rank.replace_device([&](auto gpu) {
      return std::make_unique<CountedGpu>(std::move(gpu), rank.now_s, calls, slow_calls ? 0.005 : 2e-5);
    });
    rank.reads_late = [&] { return ++wakeups, 0.0; };
    const Looks learning = looks_within(rank, wakeups, calls, 1);
    EXPECT_LT(learning.wakeups, 1050) << slow_calls;
    EXPECT_LT(learning.calls, 1100) << slow_calls;
    (void)looks_within(rank, wakeups, calls, 99);
    const Looks later = looks_within(rank, wakeups, calls, 600);
    // Readings of a counter whose moves are known, or of one whose calls are too slow to learn them; of the power
    // sensor; of the clock.
    EXPECT_LT(later.wakeups, slow_calls ? 75 : 45);
    EXPECT_LT(later.calls, slow_calls ? 85 : 60);
    EXPECT_EQ(rank.said.count("energies are less exact"), slow_calls ? 1 : 0);
    rank.measured.clear();
    for (int i = 0; i < 100; ++i) iterate(rank);
    EXPECT_GT(rank.measured.size(), 80u) << "energies still come";
  }
}

TEST(IterationMeter, AnAmdClockBelowItsLimitIsThatClock) {
  const auto rejected = [](bool amd) {
    HandTurnedRank rank(two_computations(0.005, 0.02));
    rank.replace_device([amd](auto gpu) { return std::make_unique<SoftClock>(std::move(gpu), amd); });
    rank.ask(1200);
    for (int i = 0; i < 200; ++i) iterate(rank);
    return rank.meter->facts().rejected;
  };
  EXPECT_GT(rejected(false), 50) << "none of this ran at the clock that was set";
  EXPECT_LT(rejected(true), 5);
}

TEST(IterationMeter, WithoutControlTheLimitsOfTheDeviceAreMeasured) {
  HandTurnedRank rank(two_computations(0.002, 0.1));
  rank.meter->without_control();
  rank.gpu->set_power_limit(Watts(220));
  for (int i = 0; i < 200; ++i) iterate(rank);
  rank.wait(0.2);
  rank.collect();
  EXPECT_GT(rank.measured.size(), 100U);
  EXPECT_EQ(std::ranges::count_if(rank.measured, &MeasuredIteration::throttled), 0);
  EXPECT_EQ(rank.meter->facts().throttled, 0);
  EXPECT_GT(rank.meter->facts().intervals, 0);
}

TEST(IterationMeter, ADeviceWithoutReadingsDelaysNothing) {
  HandTurnedRank rank(two_computations(0.05, 0.1));
  for (const char* call : {"nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetCurrentClocksEventReasons"}) {
    rank.gpu->inject(call, not_supported, -1);
  }
  rank.wait(0.2);
  iterate(rank);
  EXPECT_EQ(rank.measured.size(), 1U);
}

TEST(IterationMeter, BlockingPowerIsMeasuredFromWaitsAtEveryClock) {
  simulated_gpu::SimulatedGpuSpec spec = two_computations(0.03, 0.1);
  spec.blocking_power = {Watts(90), Watts(82), Watts(76), Watts(70)};
  HandTurnedRank rank(spec);
  std::mt19937 dice(5);
  for (int i = 0; i < 60; ++i) {
    rank.begin_step();
    for (const model::Instruction instruction :
         {model::Instruction::forward, model::Instruction::forward, model::Instruction::backward}) {
      rank.ask(spec.clocks[dice() % spec.clocks.size()].value());
      rank.compute(instruction);
      rank.wait(std::uniform_real_distribution<double>(0.002, 0.03)(dice));  // for another rank's activation
    }
    rank.compute(model::Instruction::backward);
    rank.end_step();
  }
  EXPECT_NEAR(rank.meter->facts().blocking.power_w, 90, 2);
  int measured = 0;
  for (const MeasuredPower& power : rank.meter->facts().powers) {
    if (power.work != "blocking") continue;
    ++measured;
    const auto clock = std::ranges::find(spec.clocks, Megahertz(power.clock_mhz));
    EXPECT_NEAR(power.power.power_w, spec.blocking_power[static_cast<std::size_t>(clock - spec.clocks.begin())].value(),
                2)
        << power.clock_mhz;
    EXPECT_LT(power.power.stddev_w, 3);
  }
  EXPECT_EQ(measured, 4);
}

/// Computations whose time is unknown.
std::ptrdiff_t unknown_in(const MeasuredIteration& iteration) {
  return std::ranges::count(iteration.computations, 0.0, &MeasuredComputation::time_s);
}

/// A rank whose clock changes take 5 ms and follow each other immediately, one per computation.
class MixedClocks : public ::testing::Test {
 protected:
  static simulated_gpu::SimulatedGpuSpec spec(const std::vector<double>& latencies_s, double forward_s) {
    simulated_gpu::SimulatedGpuSpec spec = two_computations(forward_s, 0.1);
    for (const double seconds : latencies_s) spec.switch_latency.emplace_back(seconds);
    return spec;
  }
  explicit MixedClocks(const std::vector<double>& latencies_s = {0.005, 0.005, 0.005, 0.005}, double forward_s = 0.03)
      : made(spec(latencies_s, forward_s)) {}
  void iterate(int window) {
    rank.begin_step(window, 1);
    clocks.clear();
    for (const model::Instruction instruction : {model::Instruction::forward, model::Instruction::backward}) {
      for (int i = 0; i < 4; ++i) {
        clocks.push_back(dice() % made.clocks.size());
        rank.ask(made.clocks[clocks.back()].value());
        rank.compute(instruction);
      }
    }
    rank.end_step();
    rank.wait(0.001);
  }
  double truth_s(std::size_t computation) const {
    return made.computations[computation / 4].time[clocks[computation]].value();
  }
  double truth_j(std::size_t computation) const {
    return truth_s(computation) * made.computations[computation / 4].power[clocks[computation]].value();
  }
  /// Errors of the last iteration's times and energies, in percent.
  std::pair<double, double> worst_errors() const {
    double time = 0, energy = 0;
    const MeasuredIteration& last = rank.measured.back();
    for (std::size_t i = 0; i < last.computations.size(); ++i) {
      time = std::max(time, 100 * std::abs(last.computations[i].time_s / truth_s(i) - 1));
      energy = std::max(energy, 100 * std::abs(last.computations[i].energy_j / truth_j(i) - 1));
    }
    return {time, energy};
  }

  /// The largest of these errors over all windows once the model has enough observations.
  std::pair<double, double> measure_windows() {
    double worst_time = 0, worst_energy = 0;
    int compared = 0;
    for (int i = 0; i < 60; ++i) {
      rank.measured.clear();
      iterate(i);
      rank.wait(0.11);  // for the counter's next edge
      rank.collect();
      if (i < 20 || rank.measured.empty() || unknown_in(rank.measured.back()) > 0) continue;
      EXPECT_EQ(rank.measured.back().iteration, i);
      ++compared;
      const auto [time, energy] = worst_errors();
      worst_time = std::max(worst_time, time);
      worst_energy = std::max(worst_energy, energy);
    }
    EXPECT_GT(compared, 30);
    return {worst_time, worst_energy};
  }

  simulated_gpu::SimulatedGpuSpec made;
  HandTurnedRank rank{made};
  std::mt19937 dice{4};
  std::vector<std::size_t> clocks;
};

/// As on real GPUs, changes to lower clocks take longer.
class LatencyByTarget : public MixedClocks {
 protected:
  LatencyByTarget() : MixedClocks({0.004, 0.0047, 0.0053, 0.006}) {}
};

TEST_F(MixedClocks, TimesAndEnergiesBelongToTheRequestedClock) {
  rank.meter->switch_latency(0.005, 0.0002);
  const auto [worst_time, worst_energy] = measure_windows();
  EXPECT_LT(worst_time, 0.1);
  EXPECT_LT(worst_energy, 0.5);
  const EnergyFacts facts = rank.meter->facts();
  EXPECT_GT(facts.mixed, 200);
  EXPECT_LT(facts.unsure, facts.mixed / 10);
}

TEST_F(LatencyByTarget, IsMetByTheMiddleOneAndItsSpread) {
  rank.meter->switch_latency(0.005, 0.001);
  const auto [worst_time, worst_energy] = measure_windows();
  EXPECT_LT(worst_time, 2);
  EXPECT_LT(worst_energy, 3);
}

/// Computations of 4 to 13 ms: most requests come while the previous change is pending.
class OverlappingChanges : public MixedClocks {
 protected:
  OverlappingChanges() : MixedClocks({0.005, 0.005, 0.005, 0.005}, 0.004) {}
};

TEST_F(OverlappingChanges, AClockIsAttributedAsTheGpuMakesItOneChangeAtATime) {
  rank.meter->switch_latency(0.005, 0.0002);
  int compared = 0;
  for (int i = 0; i < 200; ++i) {
    rank.measured.clear();
    iterate(i);
    rank.wait(0.11);  // for the counter's next edge
    rank.collect();
    if (i < 60 || rank.measured.empty()) continue;
    const std::vector<MeasuredComputation>& computations = rank.measured.back().computations;
    for (std::size_t k = 0; k < computations.size(); ++k) {
      if (computations[k].time_s == 0) continue;  // unknown
      EXPECT_NEAR(computations[k].time_s / truth_s(k), 1, 0.03) << "computation " << k << " of iteration " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
  EXPECT_GT(rank.meter->facts().mixed, 500);
}

TEST_F(MixedClocks, AnUncertainTimeIsReportedAsUnknownAndTheOthersAsMeasured) {
  rank.meter->switch_latency(0.005, 0.02);  // the moment within this interval is unknown
  for (int i = 0; i < 20; ++i) iterate(i);
  rank.wait(0.2);
  rank.collect();
  ASSERT_FALSE(rank.measured.empty());
  std::ptrdiff_t unknown = 0, known = 0;
  for (const MeasuredIteration& iteration : rank.measured) {
    EXPECT_FALSE(iteration.throttled) << "that would look like a power cap";
    unknown += unknown_in(iteration);
    known += static_cast<std::ptrdiff_t>(iteration.computations.size()) - unknown_in(iteration);
  }
  EXPECT_LE(unknown, rank.meter->facts().unsure) << "which counts iterations without energy too";
  EXPECT_GT(unknown, 15);
  EXPECT_GT(known, 5) << "those at the clock of the one before";
}

// The device's time of the step ends there, so that a server can separate blocking power from the remaining time and
// energy.
TEST(IterationMeter, TheEnergyOfAProfilingWindowEndsWithTheLastComputation) {
  HandTurnedRank rank(two_computations(0.02, 0.1));
  int compared = 0;
  for (int i = 0; i < 40; ++i) {
    rank.measured.clear();
    rank.begin_step(i, 1);
    const double began_s = rank.now_s;
    rank.ask(1410);
    rank.compute(model::Instruction::forward);
    rank.wait(0.03);
    rank.compute(model::Instruction::backward);
    const double computed_s = rank.now_s - began_s;
    rank.wait(0.2);  // for the other ranks
    rank.end_step();
    rank.wait(0.11);
    rank.collect();
    if (i < 30 || rank.measured.empty()) continue;
    const MeasuredIteration& last = rank.measured.back();
    EXPECT_NEAR(last.time_s, computed_s, 1e-6);
    EXPECT_NEAR(last.energy_j, 0.02 * 300 + 0.03 * 80 + 0.04 * 340, 0.03 * 22);
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

/// Frameworks end a step with the rank's last computation; it waits for the others, and for data, after that.
class StepsBeforeTheWait : public ::testing::Test {
 protected:
  /// Returns what the GPU drew since the end of the step before. `planned`: the clocks are a plan's.
  double iterate(bool planned, double wait_s, double paced_s = 0) {
    const double from_j = rank.gpu->energy().value();
    rank.wait(wait_s + paced_s);
    rank.begin_step();
    rank.step().plan_version = planned ? 1 : 0;
    rank.step().at_maximum = !planned;
    rank.step().paced_s = paced_s;
    rank.ask(planned ? 1050 : 1410);
    for (int k = 0; k < 2; ++k) {
      rank.compute(model::Instruction::forward);
      rank.wait(0.01);
      rank.compute(model::Instruction::backward);
    }
    rank.end_step();
    return rank.gpu->energy().value() - from_j;
  }
  /// Mean of what was measured of the iterations since the last call.
  double mean_measured() {
    rank.wait(0.3);
    rank.collect();
    double sum_j = 0;
    for (const MeasuredIteration& one : rank.measured) sum_j += one.energy_j;
    const auto count = static_cast<double>(rank.measured.size());
    rank.measured.clear();
    rank.begin_step();  // evaluation: the wait above is of no iteration
    rank.step().train = false;
    rank.end_step();
    return sum_j / count;
  }
  HandTurnedRank rank{two_computations(0.02, 0.1)};
};

TEST_F(StepsBeforeTheWait, SavingsAreThoseOfTheGpusCounter) {
  for (int i = 0; i < 20; ++i) iterate(false, 0.12);
  mean_measured();
  constexpr int count = 40;
  double highest_j = 0, planned_j = 0;
  iterate(false, 0);
  for (int i = 0; i < count; ++i) highest_j += iterate(false, 0.12) / count;
  rank.wait(0.3);
  rank.collect();
  rank.measured.erase(rank.measured.begin());
  const double measured_highest_j = mean_measured();
  iterate(true, 0);
  for (int i = 0; i < count; ++i) planned_j += iterate(true, 0.05) / count;
  rank.wait(0.3);
  rank.collect();
  rank.measured.erase(rank.measured.begin());
  const double measured_planned_j = mean_measured();
  EXPECT_NEAR(100 * (1 - measured_planned_j / measured_highest_j), 100 * (1 - planned_j / highest_j), 0.3);
  EXPECT_NEAR(measured_highest_j, highest_j, 0.003 * highest_j);
  EXPECT_NEAR(measured_planned_j, planned_j, 0.003 * planned_j);
}

TEST_F(StepsBeforeTheWait, ACheckpointAndWaitsForAPaceAreNoPartOfAnIteration) {
  for (int i = 0; i < 20; ++i) iterate(false, 0.05);
  mean_measured();
  for (int i = 0; i < 21; ++i) iterate(false, 0.05);
  const double usual_j = iterate(false, 0.05);
  EXPECT_NEAR(mean_measured(), usual_j, 0.01 * usual_j);
  for (int i = 0; i < 20; ++i) iterate(false, i == 10 ? 5 : 0.05);
  EXPECT_NEAR(mean_measured(), usual_j, 0.02 * usual_j);
  for (int i = 0; i < 20; ++i) iterate(false, 0.05, 0.4);
  EXPECT_NEAR(mean_measured(), usual_j, 0.02 * usual_j);
}

TEST(SpeedCurve, NeedsNothingButTheLawOfPowersAtFirst) {
  const std::vector<ClockedTime> run = {{1410, 0.01}, {900, 0.05}};
  const TimeEstimate time = SpeedCurve().alone(run, 900, 0);
  EXPECT_NEAR(time.time_s, 0.05 + 0.01 * std::pow(1410.0 / 900, 0.75), 1e-12);
  EXPECT_GT(time.stddev_s, 0.001);
}

TEST(SpeedCurve, SharesOfTheWorkAddUp) {
  SpeedCurve curve;
  for (int i = 0; i < 10; ++i) curve.learn(1410, {0.1, 0});
  const std::vector<ClockedTime> run = {{1410, 0.02}, {900, 0.12}};  // 20 % ran at the first clock
  const TimeEstimate time = curve.alone(run, 900, 0);
  EXPECT_NEAR(time.time_s, 0.15, 1e-9);
  EXPECT_LT(time.stddev_s, 0.001);
}

}  // namespace
}  // namespace perseus::client
