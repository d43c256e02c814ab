// perseus_stop() while the driver hangs, called twice, and concurrently with every other call; threads that fail to
// start or to run.
#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <new>
#include <perseus/perseus.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/training/client/scripted_server.h"
#include "tests/training/device/nvml_stand_in.h"
#include "training/client/background_thread.h"
#include "training/client/session.h"

namespace {

using perseus::client::eventually;

/// Whether a thread with this name (at most 15 characters) runs in this process.
bool thread_runs(const std::string& name) {
  bool runs = false;
  DIR* const tasks = ::opendir("/proc/self/task");
  while (const dirent* const task = ::readdir(tasks)) {
    std::string line;
    std::ifstream file(std::string("/proc/self/task/") + task->d_name + "/comm");
    runs |= std::getline(file, line) && line == name;
  }
  ::closedir(tasks);
  return runs;
}

class StopTest : public ::testing::Test {
 protected:
  StopTest() {
    ::setenv("PERSEUS_NVML", NVML_STAND_IN, 1);
    void* const library = ::dlopen(NVML_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    nvml = reinterpret_cast<GetNvmlHold>(::dlsym(library, "nvml_hold"))();
    nvml->function = nullptr;
    nvml->calls = 0;
  }
  ~StopTest() override {
    nvml->function = nullptr;
    ::unsetenv("PERSEUS_NVML");
  }
  /// A client without permission to set clocks, on the stand-in's GPU.
  static perseus::api::Options options(std::atomic<int>& lines) {
    perseus::api::Options options;
    options.device = "nvml:0";
    options.helper = "/nowhere/perseus-clockd";
    options.start_limit_s = 0.1;
    options.log_context = &lines;
    options.log = [](void* context, int, const char*) { ++*static_cast<std::atomic<int>*>(context); };
    return options;
  }
  static void step(perseus_client* client) {
    perseus_step_begin(client, PERSEUS_TRAIN);
    perseus_set_speed(client, PERSEUS_FORWARD, -1, -1);
    perseus_begin(client, PERSEUS_FORWARD, -1, -1);
    perseus_end(client, PERSEUS_FORWARD, -1, -1);
    perseus_step_end(client);
  }

  NvmlHold* nvml;
};

/// The driver calls in which the client's own thread can hang: one while it opens the GPU, one while it measures.
class StopWhileTheDriverHangs : public StopTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(StopWhileTheDriverHangs, TouchesNoFreedMemoryWhenTheDriverAnswers) {
  // Freed at the end of this block: a thread that logs after perseus_stop() writes into freed memory.
  auto lines = std::make_unique<std::atomic<int>>(0);
  nvml->function = GetParam();
  perseus_client* const client = [&] {
    const perseus::api::Options given = options(*lines);
    return perseus_start(&given);
  }();
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(eventually([&] { return step(client), nvml->calls > 0; }));
  perseus_stop(client);
  lines.reset();
  EXPECT_TRUE(thread_runs("perseus-watch")) << "it hangs in the driver";
  nvml->function = nullptr;
  EXPECT_TRUE(eventually([] { return !thread_runs("perseus-watch"); }));
  step(client);  // no effect
  perseus_stop(client);
}

INSTANTIATE_TEST_SUITE_P(Calls, StopWhileTheDriverHangs,
                         ::testing::Values("nvmlDeviceGetSupportedGraphicsClocks", "nvmlDeviceGetFieldValues",
                                           "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetClockInfo"));

TEST_F(StopTest, AClientWithoutThreadsLeftIsStoppedTwiceAndUsedAfterwards) {
  std::atomic<int> lines{0};
  perseus::api::Options given = options(lines);
  given.start_limit_s = 60;  // half of it for the threads to end
  perseus_client* const client = perseus_start(&given);
  step(client);
  perseus_stop(client);
  perseus_stop(client);
  step(client);
  EXPECT_FALSE(perseus_time_with_cuda(client, nullptr));
  perseus_time_with(client, nullptr, nullptr);
  EXPECT_EQ(perseus_status(client, nullptr, 0), 2U);
  EXPECT_STREQ(perseus_job(client), "");
  // The kernel lists a thread for a moment after it has ended.
  EXPECT_TRUE(eventually([] { return !thread_runs("perseus-watch"); }));
}

TEST_F(StopTest, StopsBesideEveryOtherCall) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> lines{0};
    const perseus::api::Options given = options(lines);
    perseus_client* const client = perseus_start(&given);
    std::atomic<bool> over{false};
    std::atomic<int> calls{0};
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      while (!over) step(client), ++calls;
    });
    threads.emplace_back([&] {
      perseus_statistics statistics{};
      statistics.size = sizeof(statistics);
      while (!over) {
        perseus_statistics_get(client, &statistics);
        (void)perseus_status(client, nullptr, 0);
        (void)perseus_job(client);
        ++calls;
      }
    });
    ASSERT_TRUE(eventually([&] { return calls > 20; }));
    for (int i = 0; i < 2; ++i) threads.emplace_back([&] { perseus_stop(client); });
    perseus_stop(client);
    over = true;
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(StopTest, AForkedChildStopsNothing) {
  std::atomic<int> lines{0};
  const perseus::api::Options given = options(lines);
  perseus_client* const client = perseus_start(&given);
  step(client);
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < 2; ++i) perseus_stop(client);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(thread_runs("perseus-watch"));
  perseus_stop(client);
}

TEST_F(StopTest, AProcessThatExitsWhileTheDriverHangsEndsWell) {
  // In a separate process: exit() destroys static objects while the thread still runs.
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        static std::atomic<int> lines{0};
        nvml->function = "nvmlInit_v2";
        const perseus::api::Options given = options(lines);
        static perseus_client* client = nullptr;
        static NvmlHold* held = nvml;
        // The first registered handler runs last: the driver returns after all other cleanup.
        (void)std::atexit([] {
          held->function = nullptr;
          (void)eventually([] { return !thread_runs("perseus-watch"); });
        });
        client = perseus_start(&given);
        (void)std::atexit([] { perseus_stop(client); });
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(BackgroundThread, IsRunAgainWhenItRunsOutOfMemory) {
  perseus::client::BackgroundThread thread;
  std::atomic<int> runs{0};
  thread.start("failing", [&](const std::stop_token& stop) {
    if (++runs < 3) throw std::bad_alloc();
    while (perseus::client::sleep_for(stop, 60)) {}
  });
  EXPECT_TRUE(eventually([&] { return runs == 3; }));
  EXPECT_TRUE(thread.running());
  EXPECT_TRUE(thread.stop(60));
}

TEST(BackgroundThread, CanBeStartedLaterWhereNoThreadCanBeMadeNow) {
  pthread_attr_t before, huge;
  ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(::pthread_attr_init(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 62U), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  perseus::client::BackgroundThread thread;
  std::atomic<bool> ran{false};
  const auto body = [&](const std::stop_token&) { ran = true; };
  thread.start("late", body);
  EXPECT_FALSE(thread.running());
  ASSERT_EQ(::pthread_setattr_default_np(&before), 0);
  thread.start("late", body);
  EXPECT_TRUE(thread.running());
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
}

}  // namespace
