// Counters and clocks that show something else than they should, from the device to the measured iterations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/training/client/hand_turned_rank.h"
#include "training/client/counter_check.h"
#include "training/device/clock_habit.h"
#include "training/device/gpu.h"

namespace perseus::client {
namespace {

/// A GPU that shows other values than the truth.
class FalseGpu final : public device::ForwardingGpu {
 public:
  struct Lies {
    std::function<double(double energy_j, int reading)> energy;
    std::function<double(double watts)> power;
    std::function<int(int mhz)> clock;
    double limit_w = -1;
  };
  FalseGpu(std::unique_ptr<Gpu> gpu, const Lies& lies) : ForwardingGpu(std::move(gpu)), lies_(lies) {}
  device::DeviceResult<Joules> energy() override {
    const auto truth = ForwardingGpu::energy();
    return truth && lies_.energy ? device::DeviceResult<Joules>(Joules(lies_.energy(truth->value(), ++readings_)))
                                 : truth;
  }
  device::DeviceResult<Watts> power() override {
    const auto truth = ForwardingGpu::power();
    return truth && lies_.power ? device::DeviceResult<Watts>(Watts(lies_.power(truth->value()))) : truth;
  }
  device::DeviceResult<Megahertz> clock() override {
    const auto truth = ForwardingGpu::clock();
    return truth && lies_.clock ? device::DeviceResult<Megahertz>(Megahertz(lies_.clock(truth->value()))) : truth;
  }

 private:
  const Lies& lies_;
  int readings_ = 0;
};

class FalseCounter : public ::testing::Test {
 protected:
  FalseCounter() {
    rank.replace_device(
        [this](std::unique_ptr<device::Gpu> gpu) { return std::make_unique<FalseGpu>(std::move(gpu), lies); });
  }
  void train(double seconds, int window = -1) {
    for (const double until_s = rank.now_s + seconds; rank.now_s < until_s;) {
      rank.begin_step(window, 1);
      rank.step().window_ends = window >= 0;
      for (const model::Instruction instruction : {model::Instruction::forward, model::Instruction::backward}) {
        rank.ask(instruction == model::Instruction::forward ? 1410 : 1200);
        for (int i = 0; i < 2; ++i) rank.compute(instruction);
      }
      rank.end_step();
      rank.wait(0.01);
      if (window < 0) continue;
      rank.wait(0.11);  // for the next look at the GPU
      rank.collect();
      ++window;
    }
  }
  /// Energies of the iterations since the last call, over the truth.
  std::pair<double, int> worst_ratio() {
    double worst = 1;
    int known = 0;
    const double truth_j = 2 * 0.02 * 300 + 2 * 0.04 * (0.3 + 0.7 * 1.175) * 340 / 1.175 + 0.8;
    for (const MeasuredIteration& one : std::exchange(rank.measured, {})) {
      if (one.energy_j < 0) continue;
      ++known;
      if (std::abs(one.energy_j / truth_j - 1) > std::abs(worst - 1)) worst = one.energy_j / truth_j;
    }
    return {worst, known};
  }
  std::string complaint() {
    for (const Complaint& one : rank.complaints.all()) {
      if (one.cause == Cause::energy) return one.message;
    }
    return "";
  }

  FalseGpu::Lies lies;
  HandTurnedRank rank{two_computations(0.02, 0.1)};
};

TEST_F(FalseCounter, ATrueOneIsNotDoubted) {
  train(100);
  EXPECT_EQ(complaint(), "");
  EXPECT_NEAR(worst_ratio().first, 1, 0.15) << "the first ones";
}

TEST_F(FalseCounter, OneThatDoesNotMoveIsNamedWithinTenSecondsAndEndsWindows) {
  lies.energy = [](double, int) { return 17.0; };
  train(11);
  EXPECT_THAT(complaint(), ::testing::HasSubstr("energy is not measured: the energy counter does not move"));
  EXPECT_EQ(rank.said.count("does not move"), 1);
  rank.measured.clear();
  train(1, 0);
  std::erase_if(rank.measured, [](const MeasuredIteration& one) { return one.window < 0; });
  ASSERT_FALSE(rank.measured.empty());
  for (const MeasuredIteration& one : rank.measured) {
    EXPECT_TRUE(one.ends_window && one.missed.empty()) << "no energies, not a window to repeat";
    EXPECT_LT(one.energy_j, 0);
  }
  train(100);
  EXPECT_EQ(rank.said.count("does not move"), 1);
  lies.energy = nullptr;
  train(70);
  EXPECT_EQ(complaint(), "");
  rank.measured.clear();
  train(10);
  EXPECT_NEAR(worst_ratio().first, 1, 0.02);
}

TEST_F(FalseCounter, OneThatCannotBeReadForHalfAMinuteEndsWindows) {
  train(2);
  rank.gpu->inject("nvmlDeviceGetTotalEnergyConsumption", 999, -1);
  train(36);
  rank.measured.clear();
  train(1, 0);
  std::erase_if(rank.measured, [](const MeasuredIteration& one) { return one.window < 0; });
  ASSERT_FALSE(rank.measured.empty());
  EXPECT_TRUE(rank.measured.back().missed.empty());
  rank.gpu->inject("nvmlDeviceGetTotalEnergyConsumption", 0, 0);
  train(10);
  rank.measured.clear();
  train(5);
  EXPECT_GT(worst_ratio().second, 20);
}

TEST_F(FalseCounter, InAnotherUnitGivesNoEnergies) {
  for (const double unit : {1000.0, 0.001, 1e6, 1 / 3600.0}) {
    lies.energy = [unit](double energy_j, int) { return unit * energy_j; };
    train(70);
    EXPECT_THAT(complaint(), ::testing::HasSubstr("energy is not measured: ")) << unit;
    const auto [worst, known] = worst_ratio();
    EXPECT_NEAR(worst, 1, 0.02) << unit;
    EXPECT_LE(known, 1) << unit << ": the one before";
    lies.energy = nullptr;
    train(130);
    EXPECT_EQ(complaint(), "") << unit;
    rank.measured.clear();
  }
}

TEST_F(FalseCounter, ThatGoesBackByTurnsGivesNoEnergies) {
  lies.energy = [](double energy_j, int reading) { return energy_j + (reading % 2 == 0 ? 0 : -2e5); };
  train(12);
  EXPECT_THAT(complaint(), ::testing::HasSubstr("impossible"));
  const auto [worst, known] = worst_ratio();
  EXPECT_NEAR(worst, 1, 0.1) << known;
  train(20);
  EXPECT_EQ(worst_ratio().second, 0);
}

TEST_F(FalseCounter, ThatWrapsOrJumpsOnceLosesTheseIntervals) {
  train(20);
  rank.measured.clear();
  lies.energy = [](double energy_j, int) { return energy_j - 4294967.295; };
  train(5);
  lies.energy = [](double energy_j, int) { return energy_j + 5000; };
  train(70);
  const auto [worst, known] = worst_ratio();
  EXPECT_NEAR(worst, 1, 0.02);
  EXPECT_GT(known, 350);
  EXPECT_EQ(rank.said.count("are left out"), 1);
  EXPECT_NEAR(rank.meter->facts().total_j / rank.gpu->energy().value(), 1, 0.05);
}

TEST_F(FalseCounter, ThatDiffersFromThePowerSensorByAFactorIsNamed) {
  lies.energy = [](double energy_j, int) { return 0.6 * energy_j; };
  train(12);
  EXPECT_THAT(complaint(), ::testing::HasSubstr("the energy counter shows 0.6"));
  EXPECT_EQ(rank.said.count("what the power sensor does"), 1);
}

TEST_F(FalseCounter, WithoutAPowerSensorTheLimitJudges) {
  lies.power = [](double) { return 0.0; };
  train(30);
  EXPECT_EQ(complaint(), "");
  lies.energy = [](double energy_j, int) { return 100 * energy_j; };
  train(130);
  EXPECT_THAT(complaint(), ::testing::HasSubstr("impossible"));
}

/// Computations whose energy is known, of all.
double known_share(const std::vector<MeasuredIteration>& iterations) {
  double known = 0, all = 0;
  for (const MeasuredIteration& one : iterations) {
    for (const MeasuredComputation& computation : one.computations) {
      known += computation.energy_j > 0 ? 1 : 0;
      ++all;
    }
  }
  return all > 0 ? known / all : 0;
}

// Some GPUs hold no clock above one of their own, or run some steps below each that is set.
TEST_F(FalseCounter, AClockBelowTheOneThatIsSetIsMeasuredWhereItIsTheGpusHabit) {
  for (const auto& clock : {std::function<int(int)>([](int mhz) { return mhz - 15; }),
                            std::function<int(int)>([](int mhz) { return std::min(mhz, 1215); }),
                            std::function<int(int)>([](int mhz) { return mhz - 375; })}) {
    FalseGpu::Lies own;
    own.clock = clock;
    HandTurnedRank other{two_computations(0.02, 0.1)};
    other.replace_device(
        [&](std::unique_ptr<device::Gpu> gpu) { return std::make_unique<FalseGpu>(std::move(gpu), own); });
    for (int i = 0; i < 100; ++i) {
      other.begin_step(i, 1);
      for (const model::Instruction instruction : {model::Instruction::forward, model::Instruction::backward}) {
        other.ask(instruction == model::Instruction::forward ? 1410 : 1200);
        for (int k = 0; k < 2; ++k) other.compute(instruction);
      }
      other.end_step();
      other.wait(0.01);
      if (i == 50) other.measured.clear();
    }
    EXPECT_GT(known_share(other.measured), 0.9) << clock(1410);
    EXPECT_LE(other.said.count("MHz is set, and the driver gives no reason"), 1);
    EXPECT_EQ(other.said.count("MHz is set, and the driver gives no reason"), clock(1410) == 1395 ? 0 : 1);
  }
}

TEST(IterationMeterGetters, WithoutOneTheOthersAreMeasured) {
  for (const char* const getter :
       {"nvmlDeviceGetPowerUsage", "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetClockInfo", "nvmlDeviceGetMigMode",
        "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTotalEnergyConsumption"}) {
    HandTurnedRank rank{two_computations(0.02, 0.1)};
    rank.gpu->inject(getter, 3, -1);
    for (int i = 0; i < 100; ++i) {
      rank.begin_step();
      rank.compute(model::Instruction::forward);
      rank.end_step();
      rank.wait(0.11);
      rank.collect();
    }
    const bool counts = std::string(getter) != "nvmlDeviceGetTotalEnergyConsumption";
    EXPECT_EQ(rank.complaints.all().size(), counts ? 0U : 1U) << getter;
    EXPECT_GT(rank.measured.size(), 90U) << getter;
    // The forward and the wait before it, of which most are shorter than the counter's period.
    EXPECT_NEAR(rank.measured.back().energy_j, counts ? 0.02 * 300 + 0.11 * 80 : -1, 0.15) << getter;
    EXPECT_NEAR(rank.measured.back().time_s, 0.02, 1e-6) << getter;
  }
}

TEST(ClockHabit, IsTheSameClockOrTheSameDistanceThreeTimes) {
  std::vector<int> clocks;
  for (int mhz = 1980; mhz >= 345; mhz -= 15) clocks.push_back(mhz);
  device::ClockHabit habit(clocks);
  EXPECT_TRUE(habit.learn(1980, 1950));
  EXPECT_FALSE(habit.learn(1980, 1830));
  EXPECT_FALSE(habit.learn(1905, 1830));
  EXPECT_TRUE(habit.learn(1950, 1830));
  EXPECT_TRUE(habit.is_usual(1875, 1830));
  EXPECT_TRUE(habit.take_remark());
  EXPECT_FALSE(habit.take_remark());
  EXPECT_FALSE(habit.learn(1500, 900)) << "once";
  EXPECT_FALSE(habit.learn(1500, 1700)) << "above: not this lock";
}

}  // namespace
}  // namespace perseus::client
