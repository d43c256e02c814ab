// Streams, events and host functions of the simulated CUDA driver against the driver API's documentation.
#include <gmock/gmock.h>

#include <future>
#include <mutex>
#include <vector>

#include "cuda.h"
#include "tests/support/eventually.h"

namespace perseus::testing {
namespace {

using Streams = CudaTest;

constexpr double kResolutionMs = 0.001;

TEST_F(Streams, ALaunchReturnsBeforeTheKernelIsDone) {
  const std::uint64_t gate = close_gate(stream_);
  const simulated_cuda::CudaEvent end = make_event();
  ASSERT_EQ(launch(short_, stream_), kSuccess);
  ASSERT_EQ(record(end, stream_), kSuccess);
  EXPECT_EQ(query(end), kNotReady);
  EXPECT_EQ(cu("cuStreamQuery", stream_), kNotReady);
  float ms = 0;
  EXPECT_EQ(cu("cuEventElapsedTime", &ms, end, end), kNotReady);
  open_gate(gate);
  EXPECT_EQ(cu("cuEventSynchronize", end), kSuccess);
  EXPECT_EQ(query(end), kSuccess);
  EXPECT_EQ(synchronize(stream_), kSuccess);
  EXPECT_EQ(cu("cuStreamQuery", stream_), kSuccess);
}

TEST_F(Streams, EventsAroundAKernelAreItsTimeApart) {
  const std::uint64_t gate = close_gate(stream_);
  const simulated_cuda::CudaEvent begin = make_event(), end = make_event();
  simulated_cuda::Stamp before{}, after{};
  stamp(stream_, before);
  record(begin, stream_);
  launch(long_, stream_);
  record(end, stream_);
  stamp(stream_, after);
  open_gate(gate);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  float ms = 0;
  ASSERT_EQ(cu("cuEventElapsedTime", &ms, begin, end), kSuccess);
  // On a machine that is too busy to begin a kernel in time, the kernel begins late, and the stamp has the delay.
  EXPECT_NEAR(ms, 1e3 * (kLongS + after.lost_s - before.lost_s), kResolutionMs);
  EXPECT_NEAR(after.end_s - after.start_s, kLongS, 1e-9);
  EXPECT_NEAR(after.kernel_energy_j, 400 * kLongS, 1e-6);
  EXPECT_EQ(after.kernel_clock_mhz, 1400);
}

TEST_F(Streams, KernelsFollowEachOtherInDeviceTimeHoweverLateTheHostLooks) {
  ASSERT_EQ(cu("perseus_simulated_configure", "visible_after_us=20000"), kSuccess);
  const std::uint64_t gate = close_gate(stream_);
  std::vector<simulated_cuda::Stamp> stamps(4);
  const simulated_cuda::CudaEvent between = make_event();
  for (simulated_cuda::Stamp& s : stamps) {
    launch(short_, stream_);
    record(between, stream_);
    stamp(stream_, s);
  }
  open_gate(gate);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    EXPECT_NEAR(stamps[i].start_s - stamps[i - 1].end_s, stamps[i].lost_s - stamps[i - 1].lost_s, 1e-9);
  }
}

TEST_F(Streams, AHostThatLaunchesLateDelaysTheDevice) {
  simulated_cuda::Stamp first{}, second{};
  launch(short_, stream_);
  stamp(stream_, first);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  const double launched_s = now_s();
  launch(short_, stream_);
  stamp(stream_, second);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  EXPECT_GE(second.start_s, launched_s);
  EXPECT_NEAR(second.starved_s - first.starved_s, second.start_s - first.end_s - (second.lost_s - first.lost_s), 1e-9);
}

TEST_F(Streams, AnEventThatWasNeverRecordedIsDone) {
  const simulated_cuda::CudaEvent event = make_event(), other = make_event();
  EXPECT_EQ(query(event), kSuccess);
  EXPECT_EQ(cu("cuEventSynchronize", event), kSuccess);
  EXPECT_EQ(cu("cuStreamWaitEvent", stream_, event, 0U), kSuccess);
  float ms = 0;
  EXPECT_EQ(cu("cuEventElapsedTime", &ms, event, other), kInvalidHandle);
}

TEST_F(Streams, EventsWithoutTimingHaveNoElapsedTime) {
  const simulated_cuda::CudaEvent timed = make_event(), untimed = make_event(kEventDisableTiming);
  record(timed, stream_);
  record(untimed, stream_);
  synchronize(stream_);
  float ms = 0;
  EXPECT_EQ(cu("cuEventElapsedTime", &ms, timed, untimed), kInvalidHandle);
  EXPECT_EQ(cu("cuEventElapsedTime", &ms, timed, timed), kSuccess);
}

TEST_F(Streams, AWaitIsForTheRecordThatWasTheLatestWhenItWasCalled) {
  const simulated_cuda::CudaStream other = make_stream();
  const simulated_cuda::CudaEvent event = make_event(), waited = make_event();
  const std::uint64_t first = close_gate(stream_);
  record(event, stream_);
  ASSERT_EQ(cu("cuStreamWaitEvent", other, event, 0U), kSuccess);
  record(waited, other);
  const std::uint64_t second = close_gate(stream_);
  record(event, stream_);  // not what `other` waits for
  EXPECT_EQ(query(waited), kNotReady);
  open_gate(first);
  EXPECT_EQ(cu("cuEventSynchronize", waited), kSuccess);
  EXPECT_EQ(query(event), kNotReady);
  open_gate(second);
  EXPECT_EQ(synchronize(stream_), kSuccess);
}

TEST_F(Streams, AStreamThatWaitsForAnEventGoesOnAtItsDeviceTime) {
  const simulated_cuda::CudaStream other = make_stream();
  const simulated_cuda::CudaEvent end = make_event();
  simulated_cuda::Stamp first{}, second{};
  const std::uint64_t gate = close_gate(stream_);
  launch(short_, stream_);
  stamp(stream_, first);
  record(end, stream_);
  ASSERT_EQ(cu("cuStreamWaitEvent", other, end, 0U), kSuccess);
  launch(short_, other);
  stamp(other, second);
  open_gate(gate);
  ASSERT_EQ(synchronize(other), kSuccess);
  EXPECT_NEAR(second.start_s - first.end_s, second.lost_s, 1e-9);
}

TEST_F(Streams, IndependentStreamsPassEachOther) {
  const simulated_cuda::CudaStream other = make_stream();
  const std::uint64_t gate = close_gate(stream_);
  launch(short_, stream_);
  ASSERT_EQ(launch(short_, other), kSuccess);
  EXPECT_EQ(synchronize(other), kSuccess);
  EXPECT_EQ(cu("cuStreamQuery", stream_), kNotReady);
  open_gate(gate);
}

TEST_F(Streams, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  const simulated_cuda::CudaStream blocking = make_stream(kStreamDefault);
  const simulated_cuda::CudaStream legacy = nullptr;
  const simulated_cuda::CudaEvent in_legacy = make_event(), behind = make_event(), free = make_event();
  const std::uint64_t gate = close_gate(blocking);
  record(in_legacy, legacy);
  const simulated_cuda::CudaStream second = make_stream(kStreamDefault);
  record(behind, second);
  record(free, stream_);  // a non-blocking stream
  EXPECT_EQ(cu("cuEventSynchronize", free), kSuccess);
  EXPECT_EQ(query(in_legacy), kNotReady);
  EXPECT_EQ(query(behind), kNotReady);
  open_gate(gate);
  EXPECT_EQ(cu("cuEventSynchronize", behind), kSuccess);
  EXPECT_EQ(query(in_legacy), kSuccess);
}

struct Visit {
  std::atomic<bool> came{false}, may_go{false};
  std::atomic<int> code{-1};
  std::atomic<double> left_s{0};
  std::thread::id thread;
  static void call(void* self) {
    auto& visit = *static_cast<Visit*>(self);
    visit.thread = std::this_thread::get_id();
    int count = 0;
    visit.code = cu("cuDeviceGetCount", &count);
    visit.came = true;
    testing::eventually([&] { return visit.may_go.load(); });
    visit.left_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
};

TEST_F(Streams, AHostFunctionRunsInOrderAndBlocksLaterWork) {
  Visit visit;
  const simulated_cuda::CudaEvent before = make_event(), after = make_event();
  simulated_cuda::Stamp stamped{};
  const std::uint64_t gate = close_gate(stream_);
  record(before, stream_);
  ASSERT_EQ(cu("cuLaunchHostFunc", stream_, &Visit::call, static_cast<void*>(&visit)), kSuccess);
  launch(short_, stream_);
  record(after, stream_);
  stamp(stream_, stamped);
  EXPECT_FALSE(visit.came);
  open_gate(gate);
  ASSERT_TRUE(comes_true([&] { return visit.came.load(); }));
  EXPECT_NE(visit.thread, std::this_thread::get_id());
  EXPECT_EQ(visit.code, kNotPermitted) << "no CUDA calls in a host function";
  EXPECT_EQ(query(before), kSuccess);
  EXPECT_EQ(query(after), kNotReady);
  visit.may_go = true;
  EXPECT_EQ(synchronize(stream_), kSuccess);
  EXPECT_GE(stamped.start_s, visit.left_s) << "the kernel behind it started earlier";
}

TEST_F(Streams, ALaunchWaitsWhileTheQueueIsFull) {
  ASSERT_EQ(cu("perseus_simulated_configure", "launch_queue=4"), kSuccess);
  const std::uint64_t gate = close_gate(stream_);  // 1 of 4
  std::atomic<int> launched{0};
  std::atomic<double> last_s{0};
  std::thread host([&] {
    cu("cuCtxSetCurrent", context_);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(launch(short_, stream_), kSuccess);
      last_s = now_s();
      ++launched;
    }
  });
  EXPECT_TRUE(comes_true([&] { return launched >= 3; }));
  for (int i = 0; i < 10000; ++i) std::this_thread::yield();
  const double opened_s = now_s();
  open_gate(gate);
  host.join();
  EXPECT_GE(last_s, opened_s) << "the queue took one more than it holds";
  EXPECT_EQ(synchronize(stream_), kSuccess);
}

TEST_F(Streams, ADestroyedStreamFinishesItsWork) {
  const simulated_cuda::CudaStream gone = make_stream();
  const simulated_cuda::CudaEvent end = make_event();
  const std::uint64_t gate = close_gate(gone);
  record(end, gone);
  ASSERT_EQ(cu("cuStreamDestroy_v2", gone), kSuccess);
  EXPECT_EQ(record(end, gone), kInvalidHandle);
  EXPECT_EQ(query(end), kNotReady);
  open_gate(gate);
  EXPECT_EQ(cu("cuEventSynchronize", end), kSuccess);
}

// Like NCCL's kernels: the stream waits for a peer, the host does not.
TEST_F(Streams, AMessageCarriesTheDeviceTimeOfItsMaker) {
  simulated_cuda::Stamp stamped{};
  std::atomic<double> told_s{0};
  ASSERT_EQ(cu("perseus_simulated_stream_await", stream_, std::uint64_t{4711} << 32U, 0.05), kSuccess);
  launch(short_, stream_);
  ASSERT_EQ(cu(
                "perseus_simulated_stream_tell", stream_,
                +[](void* user, double time_s) { static_cast<std::atomic<double>*>(user)->store(time_s); },
                static_cast<void*>(&told_s)),
            kSuccess);
  stamp(stream_, stamped);
  const double made_s = now_s();
  ASSERT_EQ(cu("perseus_simulated_deliver", context_, std::uint64_t{4711} << 32U, made_s), kSuccess);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  EXPECT_NEAR(stamped.start_s, made_s + 0.05 + stamped.lost_s, 1e-9) << "not before the message was there";
  EXPECT_EQ(told_s, stamped.end_s);
}

TEST_F(Streams, TheEnergyOfAStampIsThatOfItsDeviceTime) {
  const std::uint64_t gate = close_gate(stream_);
  simulated_cuda::Stamp first{}, second{};
  launch(short_, stream_);
  stamp(stream_, first);
  launch(short_, stream_);
  stamp(stream_, second);
  open_gate(gate);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  const double waited_s = second.start_s - first.end_s;
  EXPECT_NEAR(second.energy_j - first.energy_j, 400 * kShortS + 80 * waited_s, 1e-6);
}

}  // namespace
}  // namespace perseus::testing
