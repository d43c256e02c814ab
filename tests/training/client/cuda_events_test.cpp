// Timing by CUDA events, on a stand-in for libcuda (tests/training/client/cuda_stand_in.cpp); these tests need no GPU.
#include "training/client/cuda_events.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <perseus/perseus.hpp>
#include <string>

#include "tests/training/client/scripted_server.h"
#include "training/client/training_client.h"

namespace perseus::client {
namespace {

class CudaEventsTest : public ::testing::Test {
 protected:
  CudaEventsTest() {
    ::setenv("PERSEUS_CUDA", CUDA_STAND_IN, 1);
    library_ = ::dlopen(CUDA_STAND_IN, RTLD_NOW);
    find("stand_in_enqueue", enqueue);
    find("stand_in_run_all", run_all);
    find("stand_in_capture", capture);
    find("stand_in_fail", fail);
    find("stand_in_context", context);
  }
  ~CudaEventsTest() override {
    run_all();
    capture(0);
    fail(0);
    context(1);
    ::unsetenv("PERSEUS_CUDA");
  }
  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
  }

  static std::shared_ptr<const CudaDriver> driver() { return CudaDriver::load().value(); }
  /// Runs a step of one forward that takes `seconds` on the device.
  Step step(CudaEvents& events, std::uint64_t host_ns, double seconds) const {
    Step s;
    s.begin_ns = host_ns;
    s.begin_mark = events.mark();
    s.computations.resize(1);
    s.count = 1;
    s.computations[0].begin = events.mark();
    enqueue(seconds);
    s.computations[0].end = events.mark();
    s.end_mark = events.mark();
    s.end_ns = host_ns + 1000;
    return s;
  }

  void* library_ = nullptr;
  void (*enqueue)(double) = nullptr;
  void (*run_all)() = nullptr;
  void (*capture)(int) = nullptr;
  void (*fail)(int) = nullptr;
  void (*context)(int) = nullptr;
};

TEST_F(CudaEventsTest, TimesAreTheDevicesAndTheHostDoesNotWait) {
  auto events = CudaEvents::open(driver(), nullptr, 64);
  ASSERT_TRUE(events) << events.error().message;
  const Step recorded = step(**events, 5'000'000'000, 0.25);
  EXPECT_FALSE((*events)->finished(recorded));
  run_all();
  EXPECT_TRUE((*events)->finished(recorded));
  const Step timed = (*events)->on_host(recorded);
  EXPECT_TRUE(timed.clean);
  EXPECT_EQ(timed.begin_ns, 5'000'000'000U);
  EXPECT_NEAR(static_cast<double>(timed.computations[0].end - timed.computations[0].begin), 0.25e9, 1e3);
  EXPECT_NEAR(static_cast<double>(timed.end_ns - timed.begin_ns), 0.25e9, 1e3);
}

TEST_F(CudaEventsTest, AHostThatRunsAheadDoesNotShiftTheDevicesTimes) {
  auto events = CudaEvents::open(driver(), nullptr, 64);
  ASSERT_TRUE(events);
  const Step first = step(**events, 1'000'000'000, 1.0);
  const Step second = step(**events, 1'100'000'000, 1.0);  // enqueued 0.1 s after the first, runs 1 s after it
  run_all();
  ASSERT_TRUE((*events)->finished(second));
  (*events)->on_host(first);
  (*events)->release(first);
  EXPECT_NEAR(static_cast<double>((*events)->on_host(second).begin_ns), 2e9, 1e3);
}

TEST_F(CudaEventsTest, EventsAreUsedAgainOnceReleased) {
  auto events = CudaEvents::open(driver(), nullptr, 8);
  ASSERT_TRUE(events);
  for (int i = 0; i < 20; ++i) {
    const Step s = step(**events, 1'000'000'000, 0.01);
    ASSERT_NE(s.end_mark, 0U) << i;
    run_all();
    ASSERT_TRUE((*events)->finished(s));
    EXPECT_TRUE((*events)->on_host(s).clean);
    (*events)->release(s);
  }
  for (int i = 0; i < 8; ++i) (*events)->mark();
  EXPECT_EQ((*events)->mark(), 0U);  // no event is free
}

TEST_F(CudaEventsTest, NothingIsRecordedWhileTheStreamIsCaptured) {
  auto events = CudaEvents::open(driver(), nullptr, 8);
  ASSERT_TRUE(events);
  capture(1);
  const Step s = step(**events, 1'000'000'000, 0.01);
  EXPECT_EQ(s.begin_mark, 0U);
  EXPECT_FALSE((*events)->on_host(s).clean);
}

TEST_F(CudaEventsTest, ADeviceThatFailsIsGivenUp) {
  auto events = CudaEvents::open(driver(), nullptr, 8);
  ASSERT_TRUE(events);
  const Step s = step(**events, 1'000'000'000, 0.01);
  fail(700);
  EXPECT_TRUE((*events)->finished(s));
  EXPECT_TRUE((*events)->failed());
  EXPECT_FALSE((*events)->on_host(s).clean);
}

TEST_F(CudaEventsTest, AThreadWithoutAContextCostsAMarkAndNoMore) {
  auto events = CudaEvents::open(driver(), nullptr, 64);
  fail(CudaDriver::kInvalidContext);
  context(0);
  EXPECT_EQ((*events)->mark(), 0U);
  fail(0);
  context(1);
  EXPECT_FALSE((*events)->failed());
  EXPECT_NE((*events)->mark(), 0U);
  fail(CudaDriver::kInvalidContext);
  EXPECT_EQ((*events)->mark(), 0U);
  EXPECT_TRUE((*events)->failed()) << "the thread has one";
}

TEST_F(CudaEventsTest, ADeviceFailureIsLoggedOnceAndTheHostsClockIsUsed) {
  Said said;
  ClientOptions options;
  options.device = "none";
  options.start_limit_s = 60;
  options.log = said.log();
  TrainingClient client(options);
  client.start({});
  ASSERT_TRUE(client.calls().time_with_cuda(nullptr));
  const auto iterate = [&] {
    client.calls().step_begin(true);
    client.calls().begin(model::Instruction::forward, -1, -1);
    client.calls().end(model::Instruction::forward);
    client.calls().step_end();
    run_all();
  };
  iterate();
  fail(700);
  ASSERT_TRUE(eventually([&] {
    iterate();
    return said.count("CUDA events fail") == 1;
  }));
  perseus_statistics now{};
  client.statistics(now);
  const std::int64_t before = now.iteration;
  for (int i = 0; i < 100; ++i) iterate();
  client.statistics(now);
  EXPECT_EQ(now.iteration, before + 100);
  EXPECT_GT(now.last_iteration_time_s, 0);
  EXPECT_TRUE(client.stop());
  EXPECT_EQ(said.count("CUDA events fail"), 1);
  EXPECT_THAT(client.status(), ::testing::HasSubstr(R"("cause":"cuda")"));
}

TEST_F(CudaEventsTest, AMissingContextOrLibraryIsLoggedAndTheHostsClockIsUsed) {
  perseus::api::Options options;
  options.device = "none";
  std::string said;
  options.log_context = &said;
  options.log = [](void* to, int, const char* message) { *static_cast<std::string*>(to) += message; };
  perseus::api::Client client(options);
  context(0);
  EXPECT_FALSE(client.time_with_cuda(nullptr));
  EXPECT_THAT(said, ::testing::HasSubstr("context"));
  context(1);
  EXPECT_TRUE(client.time_with_cuda(nullptr));
  ::setenv("PERSEUS_CUDA", "/nowhere/libcuda.so.1", 1);
  perseus::api::Client other(options);
  EXPECT_FALSE(other.time_with_cuda(nullptr));
  EXPECT_THAT(said, ::testing::HasSubstr("/nowhere/libcuda.so.1"));
  { const perseus::api::TrainingStep step(other); }
  EXPECT_EQ(other.statistics().iteration, 1);
}

}  // namespace
}  // namespace perseus::client
