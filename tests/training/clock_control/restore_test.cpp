// perseus-clockd --restore as an epilog runs it, through NVML: it resets the GPU that the lease names and no other,
// and keeps the lease of a GPU that it did not reset.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "lease_folder.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "small_gpu.h"
#include "training/clock_control/lease.h"
#include "training/device/open_gpu.h"

namespace perseus::clock_control {
namespace {

using ::testing::HasSubstr;

/// A node with GPUs 0, 1, 2. A container had GPU 2 as its GPU 0, locked it, and was killed.
class Restoring : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("PERSEUS_NVML", PERSEUS_SIMULATED_NVML, 1);
    for (const char* name : {"0", "1", "2"}) {
      auto made = simulated_gpu::SimulatedGpu::create(folder_.file(name), small_gpu());
      ASSERT_TRUE(made) << made.error().message;
      gpus_.push_back(std::move(*made));
    }
    lock_and_die();
  }
  void lock_and_die() {
    show({"2"});
    auto device = device::open_gpu("nvml:0");
    ASSERT_TRUE(device) << device.error().message;
    auto lease = Lease::take((*device)->identity(), "nvml:0", 0);
    ASSERT_TRUE(lease && lease->record() && (*device)->lock_clock(Megahertz(350)));
    lease_ = lease->path();
    ASSERT_TRUE(gpus_[2]->locked());
    show({"0", "1", "2"});
  }
  void TearDown() override {
    ::unsetenv("PERSEUS_NVML");
    ::unsetenv("PERSEUS_SIMULATED_GPUS");
  }
  /// Which of the GPUs this machine or container has.
  void show(const std::vector<std::string>& names) const {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ":") + folder_.file(name);
    ::setenv("PERSEUS_SIMULATED_GPUS", list.c_str(), 1);
  }
  [[nodiscard]] int restore() const {
    const std::string command = fmt::format("{} --restore > {} 2>&1", PERSEUS_CLOCKD_PROGRAM, folder_.file("out"));
    return WEXITSTATUS(std::system(command.c_str()));
  }
  [[nodiscard]] std::string output() const { return LeaseFolder::text_of(folder_.file("out")); }
  [[nodiscard]] bool kept() const { return !LeaseFolder::text_of(lease_).empty(); }

  LeaseFolder folder_;
  std::vector<std::unique_ptr<simulated_gpu::SimulatedGpu>> gpus_;
  std::string lease_;
};

TEST_F(Restoring, AContainersGpuIsResetByItsUuid) {
  auto other = device::open_gpu("nvml:0");
  ASSERT_TRUE(other && (*other)->lock_clock(Megahertz(700)));  // locked by its own user
  EXPECT_EQ(restore(), 0) << output();
  EXPECT_FALSE(gpus_[2]->locked());
  EXPECT_TRUE(gpus_[0]->locked());
  EXPECT_FALSE(kept());
}

TEST_F(Restoring, AGpuThatIsNotVisibleHereKeepsItsLease) {
  show({"0"});
  EXPECT_EQ(restore(), 69);
  EXPECT_THAT(output(), HasSubstr("may still be locked"));
  EXPECT_TRUE(kept());
  show({"0", "1", "2"});
  EXPECT_EQ(restore(), 0) << output();
  EXPECT_FALSE(gpus_[2]->locked());
}

TEST_F(Restoring, AFolderThatDoesNotExistIsNoFolderWithoutLeases) {
  const std::string right = std::getenv("PERSEUS_RUNTIME_DIR");
  for (const std::string& wrong : {right + "/typo", std::string("relative"), folder_.file("0")}) {
    ::setenv("PERSEUS_RUNTIME_DIR", wrong.c_str(), 1);
    EXPECT_EQ(restore(), 69) << wrong;
    EXPECT_THAT(output(), HasSubstr("PERSEUS_RUNTIME_DIR: '" + wrong + "'"));
  }
  ::setenv("PERSEUS_RUNTIME_DIR", right.c_str(), 1);
  EXPECT_TRUE(kept());
}

TEST_F(Restoring, AFolderThatOthersCanWriteToIsNoFolderWithoutLeases) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  EXPECT_EQ(restore(), 69);
  EXPECT_THAT(output(), HasSubstr("PERSEUS_RUNTIME_DIR: '" + folder_.path() + "': other users can write to it"));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
  EXPECT_EQ(restore(), 0) << output();
}

TEST_F(Restoring, ALeaseOfAnEarlierBootGivesNothingBack) {
  std::string record = LeaseFolder::text_of(lease_);
  const std::size_t boot = record.find("\nboot ") + 6;
  record.replace(boot, 8, "00000000");
  std::ofstream(lease_) << record;
  EXPECT_EQ(restore(), 0);
  EXPECT_EQ(output(), lease_ + ": of an earlier boot, which ended every lock: emptied\n");
  EXPECT_TRUE(gpus_[2]->locked()) << "by a process that is none of ours";
}

TEST_F(Restoring, WithoutTheLibraryTheLeaseIsKept) {
  ::setenv("PERSEUS_NVML", "/no/such/libnvidia-ml.so.1", 1);
  EXPECT_EQ(restore(), 69);
  EXPECT_THAT(output(), HasSubstr("/no/such/libnvidia-ml.so.1"));
  EXPECT_TRUE(kept());
}

TEST_F(Restoring, ADriverThatFailsKeepsTheLease) {
  for (const char* function : {"nvmlInit_v2", "nvmlDeviceResetGpuLockedClocks"}) {
    for (const int code : {4, 9, 15, 16, 18, 999}) {
      gpus_[2]->inject(function, code, 1);  // any call may be the driver's only failure
      EXPECT_EQ(restore(), 0) << output();
      ASSERT_FALSE(gpus_[2]->locked());
      lock_and_die();
      gpus_[2]->inject(function, code, -1);
      EXPECT_EQ(restore(), 69) << function << ' ' << code;
      EXPECT_THAT(output(), HasSubstr(fmt::format("(NVML {})", code)));
      ASSERT_TRUE(kept()) << function << ' ' << code;
      ASSERT_TRUE(gpus_[2]->locked());
      gpus_[2]->inject(function, 0, 0);
    }
  }
  EXPECT_EQ(restore(), 0) << output();
  EXPECT_FALSE(gpus_[2]->locked());
  EXPECT_FALSE(kept());
}

}  // namespace
}  // namespace perseus::clock_control
