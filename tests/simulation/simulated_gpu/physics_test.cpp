// The simulated GPU against closed forms, on a hand-turned clock.
#include <gtest/gtest.h>

#include "simulation/simulated_gpu/simulated_driver.h"
#include "tests/training/device/sample_gpu.h"

namespace perseus::device {
namespace {

class SimulatedPhysics : public ::testing::Test {
 protected:
  void make(const simulated_gpu::SimulatedGpuSpec& spec) {
    auto made = simulated_gpu::SimulatedGpu::create(folder_.file("gpu"), spec, time_.source());
    ASSERT_TRUE(made) << made.error().message;
    gpu_ = std::move(*made);
    auto attached = simulated_gpu::SimulatedDriver::attach(folder_.file("gpu"), time_.source());
    ASSERT_TRUE(attached) << attached.error().message;
    driver_ = std::move(*attached);
  }
  void lock(int mhz) { ASSERT_EQ(driver_->lock_clocks(Megahertz(mhz), Megahertz(mhz)), 0); }

  ScratchFolder folder_;
  HandTurnedTime time_;
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  std::unique_ptr<simulated_gpu::SimulatedDriver> driver_;
};

TEST_F(SimulatedPhysics, EnergyIsTheSumOfItsParts) {
  make(sample_spec());
  time_.advance(2);  // idle: 100 J
  gpu_->begin(0);
  time_.advance(0.25);
  EXPECT_DOUBLE_EQ(gpu_->remaining().value(), 0.75);
  time_.advance(1.75);  // 400 J, then it waits for 1 s: 80 J
  EXPECT_EQ(gpu_->remaining(), Seconds(0));
  EXPECT_DOUBLE_EQ(gpu_->energy().value(), 580);
  gpu_->idle();
  time_.advance(1);
  EXPECT_DOUBLE_EQ(gpu_->energy().value(), 630);
  const simulated_gpu::SimulatedTruth truth = gpu_->truth(0);
  EXPECT_EQ(truth.runs, 1);
  EXPECT_DOUBLE_EQ(truth.time.value(), 1);
  EXPECT_DOUBLE_EQ(truth.energy.value(), 400);
  EXPECT_EQ(gpu_->truth(1).runs, 0);
}

TEST_F(SimulatedPhysics, AClockComesAfterTheLatencyOfItsTarget) {
  simulated_gpu::SimulatedGpuSpec spec = sample_spec();
  spec.switch_latency = {Seconds(0.1), Seconds(0.5), Seconds(0.2)};
  make(spec);
  EXPECT_FALSE(gpu_->locked());
  gpu_->begin(0);
  lock(700);
  EXPECT_TRUE(gpu_->locked());
  EXPECT_EQ(gpu_->clock(), Megahertz(1400));
  EXPECT_DOUBLE_EQ(gpu_->remaining().value(), 1.5);  // half at 1 s, half at 2 s
  time_.advance(0.5);
  EXPECT_EQ(gpu_->clock(), Megahertz(700));
  time_.advance(1.25);  // and waits for 0.25 s
  EXPECT_DOUBLE_EQ(gpu_->truth(0).time.value(), 1.5);
  EXPECT_DOUBLE_EQ(gpu_->truth(0).energy.value(), 200 + 200);
  EXPECT_EQ(driver_->unlock_clocks(), 0);
  EXPECT_FALSE(gpu_->locked());
  time_.advance(0.05);
  EXPECT_EQ(gpu_->clock(), Megahertz(700));
  time_.advance(0.05);
  EXPECT_EQ(gpu_->clock(), Megahertz(1400));
  EXPECT_NEAR(gpu_->energy().value(), 400 + 0.35 * 70, 1e-9);
}

TEST_F(SimulatedPhysics, ACommandDuringASwitchWaitsForItsEnd) {
  simulated_gpu::SimulatedGpuSpec spec = sample_spec();
  spec.switch_latency = {Seconds(0.1), Seconds(0.5), Seconds(0.2)};
  make(spec);
  gpu_->begin(0);
  lock(700);  // until 0.5
  time_.advance(0.4);
  EXPECT_EQ(driver_->unlock_clocks(), 0);  // replaced by the next request
  lock(350);                               // until 0.7
  EXPECT_NEAR(gpu_->remaining().value(), 0.1 + 0.2 + 0.4 * 4, 1e-9) << "0.5 at 1400 MHz, 0.1 at 700, 0.4 at 350";
  time_.advance(0.09);
  EXPECT_EQ(gpu_->clock(), Megahertz(1400));
  time_.advance(0.02);
  EXPECT_EQ(gpu_->clock(), Megahertz(700));
  time_.advance(0.18);
  EXPECT_EQ(gpu_->clock(), Megahertz(700));
  time_.advance(0.02);
  EXPECT_EQ(gpu_->clock(), Megahertz(350));
}

TEST_F(SimulatedPhysics, RequestingTheClockUnderWayDropsWaitingSwitches) {
  simulated_gpu::SimulatedGpuSpec spec = sample_spec();
  spec.switch_latency = {Seconds(0.1), Seconds(0.5), Seconds(0.2)};
  make(spec);
  lock(700);
  time_.advance(0.3);
  lock(350);
  lock(700);
  time_.advance(0.21);
  EXPECT_EQ(gpu_->clock(), Megahertz(700)) << "it does not start anew";
  time_.advance(1);
  EXPECT_EQ(gpu_->clock(), Megahertz(700));
}

TEST_F(SimulatedPhysics, ThePowerLimitLowersTheClockAndReportsTheReason) {
  make(sample_spec());
  gpu_->begin(0);
  time_.advance(0.5);
  EXPECT_FALSE(driver_->power_capped());
  gpu_->set_power_limit(Watts(250));
  EXPECT_TRUE(driver_->power_capped());
  EXPECT_EQ(gpu_->clock(), Megahertz(700));
  EXPECT_DOUBLE_EQ(gpu_->remaining().value(), 1);
  time_.advance(1);
  EXPECT_DOUBLE_EQ(gpu_->truth(0).energy.value(), 200 + 200);
  EXPECT_FALSE(driver_->power_capped());  // waiting stays within the limit
  EXPECT_EQ(gpu_->clock(), Megahertz(1400));
  EXPECT_DOUBLE_EQ(driver_->power_capped_for().value(), 1);
  gpu_->set_power_limit(Watts(1));  // no clock stays within it: the lowest is used
  gpu_->begin(0);
  EXPECT_EQ(gpu_->clock(), Megahertz(350));
}

TEST_F(SimulatedPhysics, TheCounterShowsItsLastRefresh) {
  make(sample_spec());
  time_.advance(0.05);
  EXPECT_EQ(driver_->counter(), Joules(0));
  time_.advance(0.1);
  EXPECT_NEAR(driver_->counter().value(), 5, 1e-9);  // at 0.1 s
  gpu_->begin(0);
  time_.advance(0.1);
  EXPECT_NEAR(driver_->counter().value(), 7.5 + 0.05 * 400, 1e-9);  // at 0.2 s
  time_.advance(10);                                                // begun at 0.15, waits from 1.15; last refresh 10.2
  EXPECT_NEAR(driver_->counter().value(), 7.5 + 400 + (10.2 - 1.15) * 80, 1e-6);
}

TEST_F(SimulatedPhysics, PowerIsAveragedOverItsWindow) {
  simulated_gpu::SimulatedGpuSpec spec = sample_spec();
  spec.power_window = Seconds(1);
  make(spec);
  time_.advance(0.5);
  EXPECT_DOUBLE_EQ(driver_->average_power().value(), 50);
  time_.advance(9.5);
  gpu_->begin(0);
  time_.advance(0.25);
  EXPECT_DOUBLE_EQ(driver_->power().value(), 400);
  EXPECT_DOUBLE_EQ(driver_->average_power().value(), 0.75 * 50 + 0.25 * 400);
  time_.advance(1);
  EXPECT_DOUBLE_EQ(driver_->average_power().value(), 0.75 * 400 + 0.25 * 80);
  const auto samples = driver_->power_samples(Seconds(0.25), 5);
  ASSERT_EQ(samples.size(), 5U);
  EXPECT_NEAR(samples.back().second.value(), 80, 1e-6);
  EXPECT_NEAR(samples.front().second.value(), 400, 1e-6);
}

TEST_F(SimulatedPhysics, InterruptedComputationsAreNoRuns) {
  make(sample_spec());
  gpu_->begin(0);
  time_.advance(0.5);
  gpu_->begin(1);
  time_.advance(2);
  EXPECT_EQ(gpu_->truth(0).runs, 0);
  EXPECT_EQ(gpu_->truth(0).energy, Joules(0));
  EXPECT_EQ(gpu_->truth(1).runs, 1);
  EXPECT_DOUBLE_EQ(gpu_->energy().value(), 1000);
}

TEST_F(SimulatedPhysics, TimeThatGoesBackwardsIsNoTime) {
  make(sample_spec());
  time_.advance(1);
  EXPECT_DOUBLE_EQ(gpu_->energy().value(), 50);
  time_.advance(-0.5);
  EXPECT_DOUBLE_EQ(gpu_->energy().value(), 50);
  time_.advance(1);
  EXPECT_DOUBLE_EQ(gpu_->energy().value(), 75);
}

TEST_F(SimulatedPhysics, ClocksThatAreNoneAreSnappedOrRefused) {
  make(sample_spec());
  EXPECT_EQ(driver_->lock_clocks(Megahertz(600), Megahertz(1000)), 0);
  EXPECT_EQ(gpu_->clock(), Megahertz(700));
  EXPECT_EQ(driver_->lock_clocks(Megahertz(1), Megahertz(1)), 0);
  EXPECT_EQ(gpu_->clock(), Megahertz(350));
  EXPECT_EQ(driver_->lock_clocks(Megahertz(0), Megahertz(0)), 2);
  EXPECT_EQ(driver_->lock_clocks(Megahertz(700), Megahertz(350)), 2);
  EXPECT_EQ(gpu_->clock(), Megahertz(350));
}

TEST_F(SimulatedPhysics, FaultsOccurAtTheirRate) {
  make(sample_spec());
  gpu_->inject("nvmlDeviceGetPowerUsage", 15, 2);
  gpu_->inject("nvmlDeviceGetClockInfo", 999, -1);
  EXPECT_EQ(driver_->fault("nvmlDeviceGetTotalEnergyConsumption"), 0);
  EXPECT_EQ(driver_->fault("nvmlDeviceGetPowerUsage"), 15);
  EXPECT_EQ(driver_->fault("nvmlDeviceGetPowerUsage"), 15);
  EXPECT_EQ(driver_->fault("nvmlDeviceGetPowerUsage"), 0);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(driver_->fault("nvmlDeviceGetClockInfo"), 999);
  gpu_->inject("nvmlDeviceGetClockInfo", 0, 0);
  EXPECT_EQ(driver_->fault("nvmlDeviceGetClockInfo"), 0);
}

TEST_F(SimulatedPhysics, ASpecificationThatIsNoneIsRefused) {
  const auto refused = [&](simulated_gpu::SimulatedGpuSpec spec) {
    const auto made = simulated_gpu::SimulatedGpu::create(folder_.file("refused"), spec, time_.source());
    return made ? std::string("made") : made.error().message;
  };
  simulated_gpu::SimulatedGpuSpec spec = sample_spec();
  spec.clocks.pop_back();
  EXPECT_NE(refused(spec).find("'forward' for 3"), std::string::npos) << refused(spec);
  spec = sample_spec();
  spec.clocks.clear();
  EXPECT_NE(refused(spec).find("allowed: 1 to 256"), std::string::npos) << refused(spec);
  spec = sample_spec();
  std::swap(spec.clocks[0], spec.clocks[1]);
  EXPECT_NE(refused(spec).find("falling"), std::string::npos) << refused(spec);
  spec = sample_spec();
  spec.computations[1].time[2] = Seconds(0);
  EXPECT_NE(refused(spec).find("time of a computation"), std::string::npos) << refused(spec);
  spec = sample_spec();
  spec.name.assign(200, 'x');
  EXPECT_NE(refused(spec).find("longer than 95 bytes"), std::string::npos) << refused(spec);
  spec = sample_spec();
  spec.power_limit = Watts(0);
  EXPECT_NE(refused(spec).find("power limit"), std::string::npos) << refused(spec);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("refused")));
}

}  // namespace
}  // namespace perseus::device
