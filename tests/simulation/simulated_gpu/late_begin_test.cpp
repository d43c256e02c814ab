// A late process begins a computation in the past: afterwards the device reports the same as if the process had been
// on time.
#include <gtest/gtest.h>

#include "tests/training/device/sample_gpu.h"

namespace perseus::device {
namespace {

class LateBegin : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = simulated_gpu::SimulatedGpu::create(folder_.file("gpu"), sample_spec(), time_.source());
    ASSERT_TRUE(made) << made.error().message;
    gpu_ = std::move(*made);
    gpu_->wait();
  }
  ScratchFolder folder_;
  HandTurnedTime time_;  // starts at 100 s
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
};

TEST_F(LateBegin, EndsWhenItWouldHave) {
  time_.advance(1.25);  // the computation should have begun at 101 s
  EXPECT_DOUBLE_EQ(gpu_->begin_in_the_past(0, 101), 101);
  EXPECT_DOUBLE_EQ(gpu_->energy().value(), 80 + 0.25 * 400);
  EXPECT_DOUBLE_EQ(gpu_->remaining().value(), 0.75);
  time_.advance(2);  // no process looked when it ended
  const simulated_gpu::SimulatedGpu::Finished finished = gpu_->finish();
  EXPECT_DOUBLE_EQ(finished.at_s, 102);
  EXPECT_DOUBLE_EQ(finished.energy.value(), 400);
  EXPECT_DOUBLE_EQ(gpu_->energy().value(), 80 + 400 + 1.25 * 80);
  EXPECT_DOUBLE_EQ(gpu_->truth(0).time.value(), 1);
  EXPECT_DOUBLE_EQ(gpu_->truth(0).energy.value(), 400);
}

TEST_F(LateBegin, MakesUpForAtMostHalfOfIt) {
  time_.advance(5);
  EXPECT_DOUBLE_EQ(gpu_->begin_in_the_past(0, 101), 104.5);
  EXPECT_DOUBLE_EQ(gpu_->remaining().value(), 0.5);
}

TEST_F(LateBegin, NeverBeginsInTheFuture) {
  EXPECT_DOUBLE_EQ(gpu_->begin_in_the_past(1, 200), 100);
  EXPECT_DOUBLE_EQ(gpu_->remaining().value(), 2);
}

TEST_F(LateBegin, DoesNotEndRunningComputations) {
  gpu_->begin(0);
  time_.advance(0.5);
  EXPECT_DOUBLE_EQ(gpu_->begin_in_the_past(1, 100.25), 100.5);
}

}  // namespace
}  // namespace perseus::device
