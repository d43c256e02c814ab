// The state file between processes: all see it, no dying process damages it, and a damaged file is rejected.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "simulation/simulated_gpu/simulated_driver.h"
#include "simulation/simulated_gpu/state_file.h"
#include "tests/support/eventually.h"
#include "tests/training/device/sample_gpu.h"
#include "training/device/gpu.h"
#include "training/device/open_gpu.h"

namespace perseus::device {
namespace {

/// Runs `body` in a child process; returns its exit status as waitpid does.
template <class F>
int in_child(F body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(SharedState, AnotherProcessCommandsAndThisOneSees) {
  const ScratchFolder folder;
  const auto gpu = simulated_gpu::SimulatedGpu::create(folder.file("gpu"), sample_spec());
  ASSERT_TRUE(gpu);
  const int status = in_child([&] {
    const auto device = open_gpu("simulated:" + folder.file("gpu"));
    if (!device || !(*device)->lock_clock(Megahertz(350))) _exit(1);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ((*gpu)->clock(), Megahertz(350));
  EXPECT_TRUE((*gpu)->locked());
}

TEST(SharedState, AProcessKilledWithTheLockHeldBlocksNoOther) {
  const ScratchFolder folder;
  const auto gpu = simulated_gpu::SimulatedGpu::create(folder.file("gpu"), sample_spec());
  ASSERT_TRUE(gpu);
  for (int round = 0; round < 20; ++round) {
    const int status = in_child([&] {
      auto file = simulated_gpu::StateFile::attach(folder.file("gpu"), {});
      if (!file) _exit(1);
      (*file)->change([](simulated_gpu::State& state, simulated_gpu::Marks&) {
        state.energy_j = -1e9;  // half of a change
        kill(getpid(), SIGKILL);
      });
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child was to die with the lock held";
    EXPECT_GE((*gpu)->energy().value(), 0);
  }
  const auto again = simulated_gpu::SimulatedGpu::attach(folder.file("gpu"));
  EXPECT_TRUE(again) << again.error().message;
}

TEST(SharedState, ManyThreadsAndProcessesLoseNothing) {
  const ScratchFolder folder;
  HandTurnedTime time;
  auto spec = sample_spec();
  spec.computations[0].time.assign(3, Seconds(1e-9));
  const auto gpu = simulated_gpu::SimulatedGpu::create(folder.file("gpu"), spec);
  ASSERT_TRUE(gpu);
  constexpr int rounds = 200;
  const auto work = [&] {
    const auto driver = simulated_gpu::SimulatedDriver::attach(folder.file("gpu"));
    const auto own = simulated_gpu::SimulatedGpu::attach(folder.file("gpu"));
    for (int i = 0; i < rounds; ++i) {
      (*own)->inject("counted", i, 0);
      (*driver)->lock_clocks(Megahertz(700), Megahertz(700));
      (*driver)->counter();
      static_cast<void>((*gpu)->energy());  // one object, many threads
      (*driver)->unlock_clocks();
    }
  };
  std::thread first([&] { work(); }), second([&] { work(); });
  EXPECT_EQ(in_child([&] { work(); }), 0);
  first.join();
  second.join();
  for (int i = 0; i < rounds; ++i) (*gpu)->run(0);
  EXPECT_EQ((*gpu)->truth(0).runs, rounds);
  EXPECT_FALSE((*gpu)->locked());
  EXPECT_EQ((*gpu)->clock(), Megahertz(1400));
}

TEST(SharedState, RunEndsEarlierWhenAnotherThreadRaisesTheClock) {
  const ScratchFolder folder;
  auto spec = sample_spec();
  spec.computations[0].time = {Seconds(0.001), Seconds(1000), Seconds(2000)};
  const auto gpu = simulated_gpu::SimulatedGpu::create(folder.file("gpu"), spec);
  ASSERT_TRUE(gpu);
  const auto driver = simulated_gpu::SimulatedDriver::attach(folder.file("gpu"));
  ASSERT_TRUE(driver);
  (*driver)->lock_clocks(Megahertz(350), Megahertz(350));
  std::thread worker([&] { (*gpu)->run(0); });
  EXPECT_TRUE(testing::eventually([&] { return !(*driver)->processes().empty(); }));
  (*driver)->unlock_clocks();
  worker.join();  // otherwise this waits for half an hour
  EXPECT_EQ((*gpu)->truth(0).runs, 1);
}

TEST(SharedState, FilesThatAreNoneAreRefused) {
  const ScratchFolder folder;
  const std::string path = folder.file("gpu");
  ASSERT_TRUE(simulated_gpu::SimulatedGpu::create(path, sample_spec()));
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto refusal = [&](const std::string& content) {
    std::ofstream(folder.file("broken"), std::ios::binary) << content;
    const auto attached = simulated_gpu::SimulatedGpu::attach(folder.file("broken"));
    return attached ? std::string() : attached.error().message;
  };
  EXPECT_EQ(refusal(whole), "");
  EXPECT_NE(refusal("").find("it has 0 bytes"), std::string::npos);
  EXPECT_NE(refusal(whole.substr(0, 1000)).find("it has 1000 bytes"), std::string::npos);
  EXPECT_NE(refusal(std::string(whole.size(), 'x')).find("does not begin with the magic number"), std::string::npos);
  std::string other_version = whole;
  other_version[8] = 7;
  EXPECT_NE(refusal(other_version).find("version 7"), std::string::npos);
  std::string damaged = whole;
  damaged[30] = 'X';  // in the GPU's name
  EXPECT_NE(refusal(damaged).find("damaged"), std::string::npos) << refusal(damaged);
  EXPECT_NE(simulated_gpu::SimulatedGpu::attach(folder.file("none")).error().message.find("No such file"),
            std::string::npos);
  EXPECT_NE(simulated_gpu::SimulatedGpu::attach(folder.path()).error().message.find("directory"), std::string::npos);
  EXPECT_FALSE(simulated_gpu::SimulatedGpu::create(folder.file("no/such/folder"), sample_spec()));
}

TEST(SharedState, AFileOfAnEarlierStartOfTheMachineIsRefused) {
  const ScratchFolder folder;
  HandTurnedTime time;
  time.turn_to(1e6);
  ASSERT_TRUE(simulated_gpu::SimulatedGpu::create(folder.file("gpu"), sample_spec(), time.source()));
  time.turn_to(10);
  const auto attached = simulated_gpu::SimulatedGpu::attach(folder.file("gpu"), time.source());
  ASSERT_FALSE(attached);
  EXPECT_NE(attached.error().message.find("last start"), std::string::npos);
}

TEST(SharedState, OnlyRootSetsWhereRootIsNeeded) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give it up";
  const ScratchFolder folder;
  auto spec = sample_spec();
  spec.needs_root = true;
  const auto gpu = simulated_gpu::SimulatedGpu::create(folder.file("gpu"), spec);
  ASSERT_TRUE(gpu);
  const auto device = open_gpu("simulated:" + folder.file("gpu"));
  ASSERT_TRUE(device);
  EXPECT_TRUE((*device)->lock_clock(Megahertz(700)));
  const int status = in_child([&] {
    if (seteuid(65534) != 0) _exit(1);
    const DeviceStatus refused = (*device)->lock_clock(Megahertz(350));
    if (refused || refused.error().fault != DeviceFault::no_permission) _exit(2);
    if (!(*device)->energy()) _exit(3);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ((*gpu)->clock(), Megahertz(700));
}

}  // namespace
}  // namespace perseus::device
