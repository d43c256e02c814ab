// Leases: who holds one, what is found after a death, and what must not be touched.
#include "clock_control/lease.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_gpu.h"
#include "lease_folder.h"

namespace perseus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Opens FakeGpus, and keeps what was done to them.
struct Workshop {
  OpenGpu open() {
    return [this](const std::string& selector) -> DeviceResult<std::unique_ptr<Gpu>> {
      opened.push_back(selector);
      if (fault) return DeviceError{*fault, "cannot open"};
      auto gpu = std::make_unique<FakeGpu>();
      gpu->faults = faults;
      return std::unique_ptr<Gpu>(std::move(gpu));
    };
  }
  std::vector<std::string> opened;
  std::optional<DeviceFault> fault;
  std::deque<DeviceFault> faults;
};

class Leases : public testing::Test {
 protected:
  DeviceResult<Lease> take(const std::string& selector = "fake:0") { return Lease::take(gpu_.identity(), selector, 0); }
  /// As a holder that was killed with the clock locked leaves it.
  std::string abandoned(const std::string& uuid = "GPU-dead") {
    GpuIdentity dead;
    dead.uuid = uuid;
    auto lease = Lease::take(dead, "fake:" + uuid, 0);
    EXPECT_TRUE(lease && lease->record());
    return lease->path();
  }
  LeaseFolder folder_;
  FakeGpu gpu_;
  Workshop workshop_;
};

TEST_F(Leases, OneHolderAtATime) {
  {
    auto first = take();
    ASSERT_TRUE(first);
    ASSERT_TRUE(first->record());
    const auto second = take();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().fault, DeviceFault::busy);
    EXPECT_THAT(second.error().message, HasSubstr(std::to_string(::getpid())));
    first->clear();
  }
  EXPECT_TRUE(take());
}

TEST_F(Leases, TheNextHolderLearnsOfARecordLeftBehind) {
  { ASSERT_TRUE(take()->record()); }
  auto next = take();
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->recorded());
  next->clear();
  EXPECT_FALSE(next->recorded());
}

TEST_F(Leases, ARecordOfAnEarlierBootIsVoid) {
  const std::string path = abandoned();
  std::ofstream(path) << "perseus clock lease\nboot 00000000-0000-0000-0000-000000000000\ngpu fake:1\npid 1\n";
  EXPECT_TRUE(restore_lease(path, 0, workshop_.open()));
  EXPECT_THAT(workshop_.opened, IsEmpty());
  EXPECT_EQ(LeaseFolder::text_of(path), "");
}

TEST_F(Leases, ExpiredOnesAreRestoredOnce) {
  const std::string first = abandoned("GPU-a"), second = abandoned("GPU-b");
  const auto expired = restore_expired_leases(workshop_.open());
  ASSERT_EQ(expired.size(), 2U);
  EXPECT_EQ(expired[0].path, first);
  EXPECT_TRUE(expired[0].restored && expired[1].restored);
  EXPECT_THAT(workshop_.opened, ElementsAre("fake:GPU-a", "fake:GPU-b"));
  EXPECT_THAT(restore_expired_leases(workshop_.open()), IsEmpty());
  EXPECT_EQ(LeaseFolder::text_of(second), "");
}

TEST_F(Leases, OnesThatAreHeldAreLeftAlone) {
  auto held = take();
  ASSERT_TRUE(held && held->record());
  EXPECT_THAT(restore_expired_leases(workshop_.open()), IsEmpty());
  EXPECT_EQ(restore_lease(held->path(), 0.01, workshop_.open()).error().fault, DeviceFault::busy);
  EXPECT_THAT(workshop_.opened, IsEmpty());
  EXPECT_NE(LeaseFolder::text_of(held->path()), "");
}

TEST_F(Leases, WhatCannotBeUnlockedStaysOnRecord) {
  const std::string path = abandoned();
  workshop_.faults = {DeviceFault::no_permission};
  EXPECT_EQ(restore_lease(path, 0, workshop_.open()).error().fault, DeviceFault::no_permission);
  EXPECT_NE(LeaseFolder::text_of(path), "");
  workshop_.fault = DeviceFault::busy;
  EXPECT_FALSE(restore_lease(path, 0, workshop_.open()));
  EXPECT_NE(LeaseFolder::text_of(path), "");
  workshop_.fault.reset();
  workshop_.faults = {DeviceFault::busy, DeviceFault::busy};
  EXPECT_TRUE(restore_lease(path, 0, workshop_.open()));
  EXPECT_EQ(LeaseFolder::text_of(path), "");
}

TEST_F(Leases, AGpuThatIsGoneHasNoLock) {
  const std::string path = abandoned();
  workshop_.fault = DeviceFault::lost;
  EXPECT_TRUE(restore_lease(path, 0, workshop_.open()));
  EXPECT_EQ(LeaseFolder::text_of(path), "");
}

TEST_F(Leases, LinksAndOtherThingsAreNotFollowed) {
  const std::string path = abandoned();
  const std::string link = folder_.file("clock-lease-link");
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  ASSERT_EQ(::mkdir(folder_.file("clock-lease-folder").c_str(), 0700), 0);
  ASSERT_EQ(::mkfifo(folder_.file("clock-lease-fifo").c_str(), 0600), 0);
  std::ofstream(folder_.file("clock-lease-text")) << "no lease at all";
  std::ofstream(folder_.file("other")) << LeaseFolder::text_of(path);
  EXPECT_FALSE(restore_lease(link, 0, workshop_.open()));
  EXPECT_FALSE(restore_lease(folder_.file("clock-lease-fifo"), 0, workshop_.open()));
  EXPECT_FALSE(restore_lease(folder_.file("none"), 0, workshop_.open()));
  EXPECT_EQ(restore_expired_leases(workshop_.open()).size(), 2U);  // the abandoned one, and the text that is none
  EXPECT_THAT(workshop_.opened, ElementsAre("fake:GPU-dead"));
}

TEST_F(Leases, AFolderThatOthersCanWriteToIsNotUsed) {
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
  const auto lease = take();
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().fault, DeviceFault::no_permission);
  EXPECT_THAT(lease.error().message, HasSubstr(folder_.path()));
}

TEST_F(Leases, NamesOfFilesAreMadeOfAnything) {
  GpuIdentity odd;
  odd.uuid = "../../etc/passwd " + std::string(500, '/');
  const auto lease = Lease::take(odd, "fake:0", 0);
  ASSERT_TRUE(lease);
  EXPECT_THAT(lease->path(), testing::StartsWith(folder_.file("clock-lease-______etc_passwd_")));
}

TEST_F(Leases, RelativePathsOfSimulatedGpusAreMadeAbsolute) {
  std::ofstream(folder_.file("gpu")) << "x";
  const std::string relative = std::filesystem::relative(folder_.file("gpu"));
  auto lease = take("simulated:" + relative);
  ASSERT_TRUE(lease && lease->record());
  EXPECT_THAT(LeaseFolder::text_of(lease->path()),
              HasSubstr("gpu simulated:" + std::filesystem::canonical(folder_.file("gpu")).string() + "\n"));
}

}  // namespace
}  // namespace perseus
