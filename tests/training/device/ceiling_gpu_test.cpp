// An administrator's clock limit: no clock is set above it, and unlocking restores it.
#include "training/device/ceiling_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "environment.h"
#include "sample_gpu.h"
#include "training/device/open_gpu.h"
#include "zeusd_stand_in.h"

namespace perseus::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Ceiling : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto made = simulated_gpu::SimulatedGpu::create(folder_.file("gpu"), sample_spec());
    ASSERT_TRUE(made) << made.error().message;
    gpu_ = std::move(*made);
    zeusd_ =
        std::make_unique<ZeusdStandIn>(folder_.file("sock"), std::vector{folder_.file("gpu")}, ZeusdStandIn::Habits{});
  }
  [[nodiscard]] std::unique_ptr<Gpu> open(Megahertz ceiling) const {
    const std::string kind = GetParam();
    auto gpu = open_gpu(kind == "simulated" ? "simulated:" + folder_.file("gpu") : kind + ":0");
    EXPECT_TRUE(gpu) << gpu.error().message;
    return with_ceiling(std::move(*gpu), ceiling);
  }
  ScratchFolder folder_;
  Environment library_{"PERSEUS_NVML", PERSEUS_NVML_SIMULATED};
  Environment files_{"PERSEUS_SIMULATED_GPUS", folder_.file("gpu")};
  Environment socket_{"ZEUSD_SOCK_PATH", folder_.file("sock")};
  Environment token_{"ZEUSD_TOKEN", nullptr};
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  std::unique_ptr<ZeusdStandIn> zeusd_;
};

TEST_P(Ceiling, IsNotExceededAndComesBack) {
  const auto gpu = open(Megahertz(1000));
  EXPECT_THAT(*gpu->supported_clocks(), ElementsAre(Megahertz(700), Megahertz(350)));
  EXPECT_TRUE(gpu->lock_clock(Megahertz(1400)));
  EXPECT_EQ(gpu_->clock(), Megahertz(700));
  EXPECT_TRUE(gpu->lock_clock(Megahertz(350)));
  EXPECT_EQ(gpu_->clock(), Megahertz(350));
  EXPECT_TRUE(gpu->unlock_clock());
  EXPECT_EQ(gpu_->clock(), Megahertz(700));
  EXPECT_TRUE(gpu_->locked()) << "within the limit, which is still there";
}

TEST_P(Ceiling, BelowEveryClockIsAnErrorAndLocksNothing) {
  const auto gpu = open(Megahertz(100));
  const auto locked = gpu->lock_clock(Megahertz(350));
  ASSERT_FALSE(locked);
  EXPECT_EQ(locked.error().fault, DeviceFault::bad_clock);
  EXPECT_THAT(locked.error().message, HasSubstr("100 MHz; allowed: 350 MHz and above"));
  EXPECT_FALSE(gpu_->locked());
}

TEST_P(Ceiling, NoneIsTheGpuItself) {
  const auto gpu = open(Megahertz(0));
  EXPECT_TRUE(gpu->lock_clock(Megahertz(1400)));
  EXPECT_TRUE(gpu->unlock_clock());
  EXPECT_FALSE(gpu_->locked());
}

INSTANTIATE_TEST_SUITE_P(Backends, Ceiling, ::testing::Values("simulated", "nvml", "zeusd"));

TEST(CeilingOfEnvironment, IsAClockOrAnError) {
  ::unsetenv("PERSEUS_CEILING_MHZ");
  EXPECT_EQ(ceiling_of_environment().value(), Megahertz(0));
  for (const auto& [text, mhz] : {std::pair{"", 0}, std::pair{"1410", 1410}, std::pair{"1", 1}}) {
    ::setenv("PERSEUS_CEILING_MHZ", text, 1);
    ASSERT_TRUE(ceiling_of_environment()) << text;
    EXPECT_EQ(*ceiling_of_environment(), Megahertz(mhz));
  }
  for (const char* const text : {"abc", " ", "0", "-5", "1,410", "1410MHz", "70000", "99999999999"}) {
    ::setenv("PERSEUS_CEILING_MHZ", text, 1);
    const auto ceiling = ceiling_of_environment();
    ASSERT_FALSE(ceiling) << text;
    EXPECT_NE(ceiling.error().message.find(text), std::string::npos);
  }
  ::unsetenv("PERSEUS_CEILING_MHZ");
}

}  // namespace
}  // namespace perseus::device
