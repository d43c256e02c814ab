// Leases: their holder, the state after a holder's death, and what a restore must leave alone.
#include "training/clock_control/lease.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake_gpu.h"
#include "lease_folder.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "small_gpu.h"
#include "training/device/open_gpu.h"

namespace perseus::clock_control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Opens FakeGpus and records the calls on them.
struct FakeGpuOpener {
  OpenGpu open() {
    return [this](const std::string& selector) -> device::DeviceResult<std::unique_ptr<device::Gpu>> {
      opened.push_back(selector);
      if (fault) return device::DeviceError{*fault, "cannot open"};
      // "fake:GPU-dead" and "nvml:GPU-dead" have that UUID; an index selects this machine's GPU with that index.
      const std::string which = selector.substr(selector.find(':') + 1);
      auto gpu = std::make_unique<FakeGpu>(which.starts_with("GPU-") ? which : "GPU-number-" + which);
      gpu->faults = faults;
      unlocked.push_back(gpu->identity().uuid);
      return std::unique_ptr<device::Gpu>(std::move(gpu));
    };
  }
  std::vector<std::string> opened, unlocked;
  std::optional<device::DeviceFault> fault;
  std::deque<device::DeviceFault> faults;
};

class Leases : public ::testing::Test {
 protected:
  device::DeviceResult<Lease> take(const std::string& selector = "fake:0") {
    return Lease::take(gpu_.identity(), selector, 0);
  }
  /// Leaves the lease as a holder does that was killed with the clock locked.
  std::string abandoned(const std::string& uuid = "GPU-dead") {
    device::GpuIdentity dead;
    dead.uuid = uuid;
    auto lease = Lease::take(dead, "fake:" + uuid, 0);
    EXPECT_TRUE(lease && lease->record());
    return lease->path();
  }
  LeaseFolder folder_;
  FakeGpu gpu_;
  FakeGpuOpener opener_;
};

TEST_F(Leases, OneHolderAtATime) {
  {
    auto first = take();
    ASSERT_TRUE(first);
    ASSERT_TRUE(first->record());
    const auto second = take();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().fault, device::DeviceFault::busy);
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

TEST_F(Leases, ARecordLeftBehindNamesTheNextHolder) {
  std::string path, own;
  {
    auto first = take();
    ASSERT_TRUE(first && first->record());
    path = first->path();
    own = LeaseFolder::text_of(path);
  }
  const std::string pid = fmt::format("pid {}\n", ::getpid());
  ASSERT_THAT(own, ::testing::EndsWith(pid));
  std::ofstream(path) << own.substr(0, own.size() - pid.size()) << "pid 123456789012\n";
  const auto next = take();
  ASSERT_TRUE(next && next->recorded());
  EXPECT_EQ(LeaseFolder::text_of(path), own);
}

TEST_F(Leases, ARecordOfAnEarlierBootIsVoid) {
  const std::string path = abandoned();
  std::ofstream(path) << "perseus clock lease\nboot 00000000-0000-0000-0000-000000000000\ngpu fake:1\npid 1\n";
  EXPECT_TRUE(restore_lease(path, 0, opener_.open()));
  EXPECT_THAT(opener_.opened, IsEmpty());
  EXPECT_EQ(LeaseFolder::text_of(path), "");
  std::ofstream(path) << "perseus clock lease\nboot 00000000-0000-0000-0000-000000000000\ngpu fake:1\npid 1\n";
  EXPECT_THAT(expired_leases(), IsEmpty());
  const auto expired = restore_expired_leases(opener_.open());
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(text_of(expired[0]), path + ": of an earlier boot, which ended every lock: emptied");
  EXPECT_EQ(LeaseFolder::text_of(path), "");
}

TEST_F(Leases, ExpiredAndDamagedOnesAreListedWithWhatToDoAndStayUnchanged) {
  auto held = take();
  ASSERT_TRUE(held && held->record());
  const std::string path = abandoned(), record = LeaseFolder::text_of(path);
  std::ofstream(folder_.file("clock-lease-GPU-odd")) << "no lease at all";
  std::ofstream(folder_.file("clock-lease-GPU-none")) << "";
  EXPECT_THAT(
      expired_leases(),
      ElementsAre(path + ": the process that locked the clock of GPU-dead has ended; perseus-clockd --restore gives it "
                         "back",
                  folder_.file("clock-lease-GPU-odd") +
                      ": not a lease of perseus-clockd, or a damaged one; left as it is; if a clock is locked, "
                      "nvidia-smi -rgc -i GPU-odd gives it back; then delete the file"));
  EXPECT_EQ(LeaseFolder::text_of(path), record);
  EXPECT_THAT(opener_.opened, IsEmpty());
}

TEST_F(Leases, NoFileOfAnotherNameIsToBeDeleted) {
  std::ofstream(folder_.file("passwd")) << "root:x:0:0\n";
  EXPECT_THAT(restore_lease(folder_.file("passwd"), 0, opener_.open()).error().message,
              ::testing::EndsWith("left as it is"));
}

TEST_F(Leases, OneThatIsKeptSaysWhatToDo) {
  const std::string path = abandoned();
  const auto error_after = [&](device::DeviceFault fault) {
    opener_.faults.assign(FakeGpu::kAlways, fault);
    return restore_lease(path, 0, opener_.open()).error().message;
  };
  EXPECT_THAT(error_after(device::DeviceFault::no_permission), HasSubstr("as root"));
  EXPECT_THAT(error_after(device::DeviceFault::lost), HasSubstr("if it has left the machine, delete the file"));
}

TEST_F(Leases, ExpiredOnesAreRestoredOnce) {
  const std::string first = abandoned("GPU-a"), second = abandoned("GPU-b");
  const auto expired = restore_expired_leases(opener_.open());
  ASSERT_EQ(expired.size(), 2U);
  EXPECT_EQ(expired[0].path, first);
  EXPECT_TRUE(expired[0].restored && expired[1].restored);
  EXPECT_THAT(opener_.opened, ElementsAre("fake:GPU-a", "fake:GPU-b"));
  EXPECT_THAT(restore_expired_leases(opener_.open()), IsEmpty());
  EXPECT_EQ(LeaseFolder::text_of(second), "");
}

TEST_F(Leases, OnesThatAreHeldAreLeftAlone) {
  auto held = take();
  ASSERT_TRUE(held && held->record());
  EXPECT_THAT(restore_expired_leases(opener_.open()), IsEmpty());
  EXPECT_EQ(restore_lease(held->path(), 0.01, opener_.open()).error().fault, device::DeviceFault::busy);
  EXPECT_THAT(opener_.opened, IsEmpty());
  EXPECT_NE(LeaseFolder::text_of(held->path()), "");
}

TEST_F(Leases, ALockThatCannotBeReleasedStaysOnRecord) {
  const std::string path = abandoned();
  opener_.faults.assign(FakeGpu::kAlways, device::DeviceFault::no_permission);
  EXPECT_EQ(restore_lease(path, 0, opener_.open()).error().fault, device::DeviceFault::no_permission);
  EXPECT_NE(LeaseFolder::text_of(path), "");
  opener_.fault = device::DeviceFault::busy;
  EXPECT_FALSE(restore_lease(path, 0, opener_.open()));
  EXPECT_NE(LeaseFolder::text_of(path), "");
  opener_.fault.reset();
  opener_.faults = {device::DeviceFault::busy, device::DeviceFault::busy};
  EXPECT_TRUE(restore_lease(path, 0, opener_.open()));
  EXPECT_EQ(LeaseFolder::text_of(path), "");
}

TEST_F(Leases, AGpuThatCannotBeReachedStaysOnRecord) {
  const std::string path = abandoned();
  for (const device::DeviceFault fault :
       {device::DeviceFault::lost, device::DeviceFault::no_driver, device::DeviceFault::not_supported}) {
    opener_.fault = fault;  // the GPU cannot be opened
    EXPECT_EQ(restore_lease(path, 0, opener_.open()).error().fault, fault);
    EXPECT_NE(LeaseFolder::text_of(path), "");
    opener_.fault.reset();
    opener_.faults.assign(FakeGpu::kAlways, fault);  // the reset fails
    const device::DeviceStatus restored = restore_lease(path, 0, opener_.open());
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().fault, fault);
    EXPECT_THAT(restored.error().message, HasSubstr("may still be locked"));
    EXPECT_NE(LeaseFolder::text_of(path), "");
    opener_.faults.clear();
  }
  EXPECT_TRUE(restore_lease(path, 0, opener_.open()));
  EXPECT_EQ(LeaseFolder::text_of(path), "");
}

TEST_F(Leases, AFaultThatComesOnceIsTriedAgain) {
  for (const device::DeviceFault fault : {device::DeviceFault::lost, device::DeviceFault::no_permission,
                                          device::DeviceFault::no_driver, device::DeviceFault::busy}) {
    const std::string path = abandoned();
    opener_.faults = {fault};
    EXPECT_TRUE(restore_lease(path, 0, opener_.open()));
    EXPECT_EQ(LeaseFolder::text_of(path), "");
  }
}

TEST_F(Leases, ABusyGpuIsNoHeldLease) {
  const std::string path = abandoned();
  opener_.faults.assign(FakeGpu::kAlways, device::DeviceFault::busy);
  const auto expired = restore_expired_leases(opener_.open());
  ASSERT_EQ(expired.size(), 1U);
  ASSERT_FALSE(expired[0].restored);
  EXPECT_THAT(expired[0].restored.error().message, HasSubstr("may still be locked"));
  EXPECT_NE(LeaseFolder::text_of(path), "");
}

TEST_F(Leases, AGpuThatHasNoNameAtTheMomentHasNoLease) {
  const auto lease = Lease::take({}, "nvml:0", 0);
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().fault, device::DeviceFault::lost);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(Leases, ARecordWithoutAUuidIsRestoredByItsSelectorOrSaysWhatToDo) {
  const std::string record = LeaseFolder::text_of(abandoned());
  const std::string boot = record.substr(0, record.find("\ngpu ") + 1), path = folder_.file("clock-lease-");
  std::ofstream(path) << boot << "gpu nvml:GPU-2\nuuid \npid 1\n";
  EXPECT_TRUE(restore_lease(path, 0, opener_.open()));
  EXPECT_THAT(opener_.opened, ElementsAre("nvml:GPU-2"));
  std::ofstream(path) << boot << "gpu nvml:0\nuuid \npid 1\n";
  const device::DeviceStatus restored = restore_lease(path, 0, opener_.open());
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().message, HasSubstr("then delete the file"));
}

TEST_F(Leases, TheRecordNamesTheGpuByUuid) {
  auto lease = Lease::take(gpu_.identity(), "nvml:0", 0);
  ASSERT_TRUE(lease && lease->record());
  EXPECT_THAT(LeaseFolder::text_of(lease->path()), HasSubstr("\ngpu nvml:GPU-fake\nuuid GPU-fake\n"));
}

TEST_F(Leases, AnOlderRecordByIndexIsRestoredByTheUuidOfItsFile) {
  const std::string path = abandoned("GPU-2");
  std::string record = LeaseFolder::text_of(path);
  const std::string boot = record.substr(0, record.find("\ngpu ") + 1);
  std::ofstream(path) << boot << "gpu nvml:0\npid 1\n";
  EXPECT_TRUE(restore_lease(path, 0, opener_.open()));
  EXPECT_THAT(opener_.opened, ElementsAre("nvml:GPU-2"));
  EXPECT_EQ(LeaseFolder::text_of(path), "");
  // Without UUIDs as selectors, a restore uses the index only if the GPU behind it has the lease's UUID.
  std::ofstream(path) << boot << "gpu other:0\npid 1\n";
  const device::DeviceStatus restored = restore_lease(path, 0, opener_.open());
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().message, HasSubstr("is another GPU here: GPU-number-0"));
  EXPECT_NE(LeaseFolder::text_of(path), "");
}

TEST_F(Leases, AnAdministratorsCeilingIsRestoredInsteadOfRemoved) {
  const std::string file = folder_.file("gpu");
  auto gpu = simulated_gpu::SimulatedGpu::create(file, small_gpu());
  ASSERT_TRUE(gpu);
  std::string path;
  {
    auto device = device::open_gpu("simulated:" + file);
    ASSERT_TRUE(device);
    auto lease = Lease::take((*device)->identity(), "simulated:" + file, 0, Megahertz(700));
    ASSERT_TRUE(lease && lease->record() && (*device)->lock_clock(Megahertz(350)));
    path = lease->path();
  }
  EXPECT_EQ((*gpu)->clock(), Megahertz(350));
  EXPECT_TRUE(restore_lease(path, 0));
  EXPECT_EQ((*gpu)->clock(), Megahertz(700));
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
  EXPECT_FALSE(restore_lease(link, 0, opener_.open()));
  EXPECT_FALSE(restore_lease(folder_.file("clock-lease-fifo"), 0, opener_.open()));
  EXPECT_FALSE(restore_lease(folder_.file("none"), 0, opener_.open()));
  const std::string how = "; if a clock is locked, nvidia-smi -rgc gives it back; then delete the file";
  EXPECT_THAT(expired_leases(),
              ::testing::IsSupersetOf(
                  {folder_.file("clock-lease-fifo") + ": a FIFO, not a file; left as it is" + how,
                   folder_.file("clock-lease-folder") + ": a directory, not a file; left as it is" + how,
                   folder_.file("clock-lease-link") + ": a symbolic link, not a file; left as it is" + how}));
  // An expired lease, an invalid one, and three that are no files.
  EXPECT_EQ(restore_expired_leases(opener_.open()).size(), 5U);
  EXPECT_THAT(opener_.opened, ElementsAre("fake:GPU-dead"));
}

TEST_F(Leases, AFolderThatOthersCanWriteToIsNotUsed) {
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
  const auto lease = take();
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().fault, device::DeviceFault::no_permission);
  EXPECT_THAT(lease.error().message, HasSubstr(folder_.path() + " (other users can write to it)"));
  // Its leases are those of a job that ran before it changed.
  ASSERT_EQ(restore_expired_leases(opener_.open()).size(), 1U);
  EXPECT_FALSE(restore_expired_leases(opener_.open())[0].restored);
  EXPECT_THAT(expired_leases(), ElementsAre(HasSubstr("other users can write to it")));
}

TEST_F(Leases, RootNamesThoseOfOtherUsersAndLeavesThemAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const std::string record = LeaseFolder::text_of(abandoned()), right = std::getenv("PERSEUS_RUNTIME_DIR");
  const std::string theirs = "/tmp/perseus-" + std::to_string(4000000000 + ::getpid()),
                    path = theirs + "/clock-lease-GPU-1";
  ASSERT_EQ(::mkdir(theirs.c_str(), 0700), 0);
  std::ofstream(path) << record;
  std::ofstream(theirs + "/clock-lease-\x1b[2J") << record;
  ASSERT_EQ(::chown(theirs.c_str(), 65534, 65534), 0);
  ::unsetenv("PERSEUS_RUNTIME_DIR");
  const auto named = expired_leases_of_others();
  ::setenv("PERSEUS_RUNTIME_DIR", right.c_str(), 1);
  EXPECT_THAT(named, ::testing::Contains(path + ": of another user's process, which has ended; that user's "
                                                "perseus-clockd --restore gives the clock back"));
  EXPECT_THAT(named, ::testing::Not(::testing::Contains(HasSubstr("\x1b"))));
  EXPECT_EQ(LeaseFolder::text_of(path), record);
  std::filesystem::remove_all(theirs);
}

TEST_F(Leases, ARelativeFolderIsNotUsed) {
  ::setenv("PERSEUS_RUNTIME_DIR", "relative-leases", 1);
  const auto lease = take();
  ASSERT_FALSE(lease);
  EXPECT_THAT(lease.error().message, HasSubstr("PERSEUS_RUNTIME_DIR=relative-leases (not an absolute path)"));
  EXPECT_FALSE(std::filesystem::exists("relative-leases"));
  EXPECT_THAT(expired_leases(), ElementsAre(HasSubstr("not an absolute path")));
}

TEST_F(Leases, NamesOfFilesAreMadeOfAnything) {
  device::GpuIdentity odd;
  odd.uuid = "../../etc/passwd " + std::string(500, '/');
  const auto lease = Lease::take(odd, "fake:0", 0);
  ASSERT_TRUE(lease);
  EXPECT_THAT(lease->path(), ::testing::StartsWith(folder_.file("clock-lease-______etc_passwd_")));
}

TEST_F(Leases, RelativePathsOfSimulatedGpusAreMadeAbsolute) {
  std::ofstream(folder_.file("gpu")) << "x";
  const std::string relative = std::filesystem::relative(folder_.file("gpu"));
  auto lease = take("simulated:" + relative);
  ASSERT_TRUE(lease && lease->record());
  EXPECT_THAT(LeaseFolder::text_of(lease->path()),
              HasSubstr("gpu simulated:" + std::filesystem::canonical(folder_.file("gpu")).string() + "\n"));
}

TEST(LeaseFiles, FilesThatAreNoLeaseAreNotChanged) {
  LeaseFolder folder;
  const std::string path = folder.file("clock-lease-GPU-1");
  const auto none = [](const std::string&) -> device::DeviceResult<std::unique_ptr<device::Gpu>> {
    return device::DeviceError{device::DeviceFault::lost, "no GPU is opened"};
  };
  for (const std::string text : {"root:x:0:0:root:/root:/bin/bash\n", "hello", "perseus clock lease\n"}) {
    std::ofstream(path, std::ios::trunc) << text;
    const device::DeviceStatus restored = restore_lease(path, 0, none);
    ASSERT_FALSE(restored) << text;
    EXPECT_NE(restored.error().message.find(path + ": not a lease"), std::string::npos);
    EXPECT_EQ(LeaseFolder::text_of(path), text);
  }
  FakeGpu gpu("GPU-1");
  const auto lease = Lease::take(gpu.identity(), "fake:1", 0);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->recorded()) << "a damaged record of this GPU: its clock may be locked";
}

}  // namespace
}  // namespace perseus::clock_control
