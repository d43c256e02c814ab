// The NVML backend over a stand-in: behavior of real drivers that the simulated GPU does not have.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "environment.h"
#include "nvml_stand_in.h"
#include "training/device/gpu.h"
#include "training/device/nvml_abi.h"
#include "training/device/open_gpu.h"

namespace perseus::device {
namespace {

class NvmlDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const library = dlopen(NVML_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto get = reinterpret_cast<GetNvmlStandIn>(dlsym(library, "nvml_stand_in"));
    ASSERT_NE(get, nullptr);
    driver_ = get();
    *driver_ = NvmlStandIn();
  }
  static std::unique_ptr<Gpu> open() {
    auto gpu = open_gpu("nvml:0");
    EXPECT_TRUE(gpu) << gpu.error().message;
    return std::move(*gpu);
  }

  Environment library_{"PERSEUS_NVML", NVML_STAND_IN};
  NvmlStandIn* driver_ = nullptr;
};

TEST_F(NvmlDriver, ASliceStandsForItsWholeCard) {
  driver_->slice = true;
  EXPECT_EQ(open()->identity().uuid, "GPU-card");
}

// torch.cuda.get_device_properties().uuid of a slice, to which PyTorch adds GPU-.
TEST_F(NvmlDriver, ASliceIsFoundByTheUuidThatCudaGives) {
  for (const char* const which : {"nvml:MIG-slice", "nvml:GPU-slice", "nvml:MIG-GPU-card/1/0"}) {
    const auto gpu = open_gpu(which);
    ASSERT_TRUE(gpu) << gpu.error().message;
    EXPECT_EQ((*gpu)->identity().uuid, "GPU-card") << which;
  }
  EXPECT_FALSE(open_gpu("nvml:GPU-other"));
}

TEST_F(NvmlDriver, WithoutAListItsClocksAreStepsWithinItsRange) {
  for (const bool lists_none : {false, true}) {
    driver_->list_code = lists_none ? 0 : 3;
    driver_->lists_none = lists_none;
    driver_->range_code = 0;
    const auto gpu = open();
    const auto clocks = gpu->supported_clocks();
    ASSERT_TRUE(clocks) << clocks.error().message;
    EXPECT_EQ(clocks->size(), 110U);
    EXPECT_EQ(clocks->front(), Megahertz(1980));
    EXPECT_EQ(clocks->back(), Megahertz(345));
    EXPECT_EQ(gpu->conditions()->clocks_source, "nvmlDeviceGetMinMaxClockOfPState");
    driver_->range_code = 3;
    EXPECT_EQ(open()->supported_clocks()->front(), Megahertz(1500));
    EXPECT_EQ(open()->conditions()->clocks_source, "nvmlDeviceGetMaxClockInfo");
    driver_->range_code = 4;
    EXPECT_EQ(open()->supported_clocks().error().fault, DeviceFault::not_supported) << "measured without control";
  }
  driver_->list_code = 15;
  EXPECT_EQ(open()->supported_clocks().error().fault, DeviceFault::lost);
}

TEST_F(NvmlDriver, ALimitOfZeroWattsIsNotKnown) {
  EXPECT_EQ(*open()->power_limit(), Watts(300));
  driver_->limit_mw = 0;
  EXPECT_EQ(open()->power_limit().error().fault, DeviceFault::not_supported);
}

TEST_F(NvmlDriver, ItsNodeIsThatOfItsMinorNumber) { EXPECT_EQ(open()->identity().node, "/dev/nvidia3"); }

TEST_F(NvmlDriver, IsSlicedNowAndNotAfterTheNextReset) {
  driver_->mig_pending = 1;
  EXPECT_FALSE(open()->conditions()->mig);
  driver_->mig_now = 1;
  driver_->mig_pending = 0;
  EXPECT_TRUE(open()->conditions()->mig);
}

TEST_F(NvmlDriver, ClocksAreThoseAtTheHighestMemoryClockEachOnce) {
  EXPECT_THAT(*open()->supported_clocks(), ::testing::ElementsAre(Megahertz(1410), Megahertz(1200), Megahertz(900)));
}

TEST_F(NvmlDriver, TheClockIsTheSMs) { EXPECT_EQ(*open()->clock(), Megahertz(1410)); }

TEST_F(NvmlDriver, EveryThrottleReasonIsReported) {
  const auto gpu = open();
  const auto events_for = [&](unsigned long long reason) {
    driver_->reasons = reason;
    return *gpu->clock_events();
  };
  EXPECT_TRUE(events_for(nvml::reason_power_cap).power_cap);
  EXPECT_TRUE(events_for(nvml::reason_sw_thermal).thermal);
  EXPECT_TRUE(events_for(nvml::reason_hw_thermal).thermal);
  EXPECT_TRUE(events_for(nvml::reason_hw_slowdown).power_brake);
  EXPECT_TRUE(events_for(nvml::reason_power_brake).power_brake);
  EXPECT_TRUE(events_for(nvml::reason_sync_boost).sync_boost);
  EXPECT_TRUE(events_for(nvml::reason_idle).idle);
  EXPECT_FALSE(events_for(nvml::reason_idle | nvml::reason_sync_boost).throttled());
}

TEST_F(NvmlDriver, AFieldHasACodeOfItsOwn) {
  EXPECT_EQ(*open()->power(), Watts(500));
  EXPECT_TRUE(open()->conditions()->power_smoothing);
  driver_->field_code = 3;
  EXPECT_EQ(*open()->power(), Watts(42));
  EXPECT_FALSE(open()->conditions()->power_smoothing);
}

TEST_F(NvmlDriver, ASuperchipHasThePowerOfItsModule) {
  EXPECT_FALSE(open()->conditions()->whole_module);
  driver_->only_module = true;
  const auto gpu = open();
  EXPECT_EQ(*gpu->power(), Watts(500));
  EXPECT_TRUE(gpu->conditions()->whole_module);
}

TEST_F(NvmlDriver, AClockThatItDoesNotHaveIsTheNearestOneOnce) {
  constexpr int invalid_argument = 2;
  const auto gpu = open();
  driver_->lock_code = invalid_argument;
  EXPECT_TRUE(gpu->lock_clock(Megahertz(1290)));
  EXPECT_EQ(driver_->locked_mhz, 1200U);
  EXPECT_EQ(driver_->lock_calls, 2);
  driver_->lock_code = invalid_argument;
  const DeviceStatus refused = gpu->lock_clock(Megahertz(900));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, DeviceFault::bad_clock);
  EXPECT_EQ(driver_->lock_calls, 3) << "there is no nearer one";
}

TEST_F(NvmlDriver, WhileTheMemorysClockIsLockedTheClocksAreThoseBesideIt) {
  constexpr int invalid_argument = 2;
  const auto gpu = open();
  ASSERT_EQ(gpu->supported_clocks()->front(), Megahertz(1410));
  driver_->memory_mhz = 1593;
  driver_->lock_code = invalid_argument;
  EXPECT_EQ(gpu->lock_clock(Megahertz(1200)).error().fault, DeviceFault::bad_clock);
  EXPECT_THAT(*gpu->supported_clocks(), ::testing::ElementsAre(Megahertz(1300), Megahertz(1100)));
  EXPECT_TRUE(gpu->lock_clock(Megahertz(1300)));
  // The memory of an idle GPU: its list is too low for a job.
  driver_->memory_mhz = 405;
  driver_->lock_code = invalid_argument;
  EXPECT_TRUE(gpu->lock_clock(Megahertz(1200)));
  EXPECT_GT(driver_->locked_mhz, 210U);
}

TEST_F(NvmlDriver, TheProcessItsParentAndTheMpsServerAreNotOtherProcesses) {
  EXPECT_EQ(open()->conditions()->other_processes, 1);
  EXPECT_EQ(open()->conditions()->unknown_processes, 1) << "of the host, in a container";
  for (const char* name : {"python3", "nvidia-cuda-mps"}) {
    int named[2], until[2];
    ASSERT_EQ(pipe(named) | pipe(until), 0);
    const pid_t process = fork();
    if (process == 0) {
      char byte = 0;
      prctl(PR_SET_NAME, name);
      if (write(named[1], &byte, 1) == 1) static_cast<void>(read(until[0], &byte, 1));
      _exit(0);
    }
    char byte = 0;
    ASSERT_EQ(read(named[0], &byte, 1), 1);
    driver_->computes = static_cast<unsigned>(process);
    const auto conditions = open()->conditions();
    EXPECT_EQ(conditions->other_processes, std::string(name) == "python3" ? 2 : 1);
    EXPECT_EQ(conditions->unknown_processes, 1);
    ASSERT_EQ(write(until[1], &byte, 1), 1);
    waitpid(process, nullptr, 0);
    for (const int fd : {named[0], named[1], until[0], until[1]}) close(fd);
  }
}

}  // namespace
}  // namespace perseus::device
