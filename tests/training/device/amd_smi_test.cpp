// The AMD SMI backend over a stand-in of the library, in both layouts that it supports.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "amd_smi_stand_in.h"
#include "environment.h"
#include "training/device/gpu.h"
#include "training/device/open_gpu.h"

namespace perseus::device {
namespace {

class Amd : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string folder = GetParam();
    const std::string name = folder + (folder.ends_with("24") ? "/libamd_smi.so.24" : "/libamd_smi.so.26");
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto get = reinterpret_cast<GetAmdStandIn>(dlsym(library, "amd_stand_in"));
    ASSERT_NE(get, nullptr);
    state_ = get();
    *state_ = AmdStandIn();
    auto gpu = open_gpu("amdsmi:0");
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_ = std::move(*gpu);
  }

  Environment folder_{"AMDSMI_LIB_DIR", GetParam()};
  AmdStandIn* state_ = nullptr;
  std::unique_ptr<Gpu> gpu_;
};

TEST_P(Amd, ReadsInOurUnits) {
  EXPECT_EQ(gpu_->identity().name, "AMD Instinct MI300X");
  EXPECT_EQ(gpu_->identity().pci_bus_id, "0001:43:00.0");
  EXPECT_TRUE(gpu_->identity().simulated);
  EXPECT_NEAR(gpu_->energy()->value(), 15.3, 1e-6);
  EXPECT_EQ(*gpu_->power(), Watts(300));
  EXPECT_EQ(*gpu_->power_limit(), Watts(650));
  EXPECT_EQ(gpu_->conditions()->default_power_limit, Watts(750));
  EXPECT_EQ(*gpu_->clock(), Megahertz(1700));
  const auto clocks = *gpu_->supported_clocks();
  EXPECT_EQ(clocks.front(), Megahertz(1700));
  EXPECT_EQ(clocks[1], Megahertz(1675));
  EXPECT_EQ(clocks.back(), Megahertz(500));
  EXPECT_TRUE(std::ranges::is_sorted(clocks, std::greater<>()));
}

TEST_P(Amd, WhereThereIsNoPresentPowerItIsTheAverage) {
  state_->power_w = 0xffff;
  EXPECT_EQ(*gpu_->power(), Watts(290));
  state_->average_power_w = 0xffffffff;
  EXPECT_EQ(gpu_->power().error().fault, DeviceFault::not_supported);
}

TEST_P(Amd, ClocksUpAndDownInAnOrderThatTheDriverTakes) {
  for (const int mhz : {900, 1500, 1400, 500, 1700, 1000, 1000}) {
    const DeviceStatus done = gpu_->lock_clock(Megahertz(mhz));
    EXPECT_TRUE(done) << mhz << ": " << done.error().message;
    EXPECT_EQ(state_->limit_min_mhz[0], mhz);
    EXPECT_EQ(state_->limit_max_mhz[0], mhz);
  }
  EXPECT_TRUE(gpu_->lock_clock(Megahertz(1500)));
  EXPECT_TRUE(gpu_->limit_clock(Megahertz(500), Megahertz(1000)));
  EXPECT_EQ(state_->limit_min_mhz[0], 500);
  EXPECT_EQ(state_->limit_max_mhz[0], 1000);
  EXPECT_EQ(state_->limit_max_mhz[1], 1700);
  EXPECT_TRUE(gpu_->unlock_clock());
  EXPECT_EQ(state_->resets[0], 1);
  EXPECT_EQ(state_->resets[1], 0);
  // The backend replaces another process's settings in either direction.
  state_->limit_min_mhz[0] = state_->limit_max_mhz[0] = 600;
  EXPECT_TRUE(gpu_->lock_clock(Megahertz(1200)));
  state_->limit_min_mhz[0] = state_->limit_max_mhz[0] = 1600;
  EXPECT_TRUE(gpu_->lock_clock(Megahertz(1300)));
  EXPECT_EQ(gpu_->lock_clock(Megahertz(3000)).error().fault, DeviceFault::bad_clock);
  EXPECT_EQ(gpu_->lock_clock(Megahertz(0)).error().fault, DeviceFault::bad_clock);
}

TEST_P(Amd, SetsItsPowerCap) {
  EXPECT_EQ(gpu_->power_limits()->set, Watts(650));
  EXPECT_EQ(gpu_->power_limits()->least, Watts(100));
  EXPECT_EQ(gpu_->power_limits()->most, Watts(750));
  EXPECT_TRUE(gpu_->set_power_limit(Watts(500)));
  EXPECT_EQ(gpu_->power_limits()->set, Watts(500));
  EXPECT_EQ(gpu_->set_power_limit(Watts(50)).error().fault, DeviceFault::not_supported);
  state_->status = 10;
  EXPECT_EQ(gpu_->set_power_limit(Watts(600)).error().fault, DeviceFault::no_permission);
}

TEST_P(Amd, SelectsByIndexAndBusId) {
  EXPECT_EQ((*open_gpu("amdsmi:1"))->identity().uuid, "a5ff74a1-0001");
  EXPECT_EQ((*open_gpu("amdsmi:0001:83:01.0"))->identity().uuid, "a5ff74a1-0001");
  EXPECT_EQ(open_gpu("amdsmi:2").error().fault, DeviceFault::lost);
  EXPECT_EQ(open_gpu("amdsmi:0001:99:00.0").error().fault, DeviceFault::lost);
  EXPECT_EQ(open_gpu("amdsmi:first").error().fault, DeviceFault::not_supported);
  EXPECT_THAT(find_gpus(), ::testing::IsSupersetOf({"amdsmi:0", "amdsmi:1"}));
}

TEST_P(Amd, EveryStatusHasAMessage) {
  const std::pair<int, DeviceFault> meanings[] = {
      {1, DeviceFault::bad_clock},      {2, DeviceFault::not_supported},  {3, DeviceFault::not_supported},
      {10, DeviceFault::no_permission}, {30, DeviceFault::busy},          {31, DeviceFault::lost},
      {32, DeviceFault::no_driver},     {43, DeviceFault::not_supported}, {-1, DeviceFault::busy}};
  for (const auto& [status, fault] : meanings) {
    state_->status = status;
    EXPECT_EQ(gpu_->lock_clock(Megahertz(900)).error().fault, fault) << status;
    const DeviceFault reading = fault == DeviceFault::bad_clock ? DeviceFault::not_supported : fault;
    EXPECT_EQ(gpu_->clock().error().fault, reading) << status;
    EXPECT_EQ(gpu_->energy().error().fault, reading) << status;
    EXPECT_EQ(gpu_->power().error().fault, reading) << status;
    EXPECT_EQ(gpu_->power_limit().error().fault, reading) << status;
    EXPECT_EQ(gpu_->supported_clocks().error().fault, reading) << status;
  }
  state_->status = 10;
  EXPECT_EQ(gpu_->unlock_clock().error().message, "amdsmi_set_gpu_perf_level of amdsmi:0: no permission (AMD SMI 10)");
}

INSTANTIATE_TEST_SUITE_P(Layouts, Amd, ::testing::Values(AMD_STAND_IN_24, AMD_STAND_IN_26), [](const auto& layout) {
  return std::string(layout.param).ends_with("24") ? "abi24" : "abi26";
});

}  // namespace
}  // namespace perseus::device
