// Stream capture and graphs of the simulated CUDA driver.
#include <future>

#include "cuda.h"

namespace perseus::testing {
namespace {

class Captured : public CudaTest {
 protected:
  static int begin(simulated_cuda::CudaStream stream, int mode = kCaptureGlobal) {
    return cu("cuStreamBeginCapture_v2", stream, mode);
  }
  static int status(simulated_cuda::CudaStream stream) {
    int found = -1;
    const int code = cu("cuStreamIsCapturing", stream, &found);
    return code == kSuccess ? found : -code;
  }
  simulated_cuda::CudaGraph graph_ = nullptr;
};

/// In a thread of its own, with that capture mode.
int in_another_thread(simulated_cuda::CudaContext context, int mode, const std::function<int()>& call) {
  return std::async(std::launch::async,
                    [&] {
                      cu("cuCtxSetCurrent", context);
                      cu("cuThreadExchangeStreamCaptureMode", &mode);
                      return call();
                    })
      .get();
}

TEST_F(Captured, WorkIsRecordedAndRunsWhenTheGraphIsLaunched) {
  simulated_cuda::Stamp before{}, after{};
  stamp(stream_, before);
  ASSERT_EQ(begin(stream_), kSuccess);
  EXPECT_EQ(status(stream_), kCaptureActive);
  launch(short_, stream_);
  launch(short_, stream_);
  ASSERT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kSuccess);
  EXPECT_EQ(status(stream_), kCaptureNone);
  std::size_t nodes = 0;
  ASSERT_EQ(cu("cuGraphGetNodes", graph_, static_cast<void**>(nullptr), &nodes), kSuccess);
  EXPECT_EQ(nodes, 2U);
  stamp(stream_, after);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  EXPECT_EQ(after.energy_j - before.energy_j, 80 * (after.time_s - before.time_s)) << "a captured kernel ran";

  simulated_cuda::CudaGraphExecutable executable = nullptr;
  ASSERT_EQ(cu("cuGraphInstantiateWithFlags", &executable, graph_, 0ULL), kSuccess);
  ASSERT_EQ(cu("cuGraphLaunch", executable, stream_), kSuccess);
  stamp(stream_, after);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  EXPECT_NEAR(after.end_s - after.start_s, kShortS, 1e-9);
  EXPECT_EQ(cu("cuGraphExecDestroy", executable), kSuccess);
  EXPECT_EQ(cu("cuGraphDestroy", graph_), kSuccess);
}

TEST_F(Captured, ACapturedEventCannotBeQueriedAndAQueryInvalidatesTheCapture) {
  const simulated_cuda::CudaEvent event = make_event();
  begin(stream_);
  ASSERT_EQ(record(event, stream_), kSuccess);
  EXPECT_EQ(query(event), kCapturedEvent);
  EXPECT_EQ(status(stream_), kCaptureInvalidated);
  EXPECT_EQ(launch(short_, stream_), kStreamCaptureInvalidated);
  EXPECT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kStreamCaptureInvalidated);
  EXPECT_EQ(graph_, nullptr);
  EXPECT_EQ(record(event, stream_), kSuccess);
  EXPECT_EQ(cu("cuEventSynchronize", event), kSuccess) << "recorded again outside of a capture";
}

TEST_F(Captured, AnExternalEventIsRecordedByEachLaunch) {
  const simulated_cuda::CudaEvent event = make_event();
  begin(stream_);
  launch(short_, stream_);
  ASSERT_EQ(cu("cuEventRecordWithFlags", event, stream_, static_cast<unsigned>(kRecordExternal)), kSuccess);
  ASSERT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kSuccess);
  simulated_cuda::CudaGraphExecutable executable = nullptr;
  cu("cuGraphInstantiateWithFlags", &executable, graph_, 0ULL);
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t gate = close_gate(stream_);
    ASSERT_EQ(cu("cuGraphLaunch", executable, stream_), kSuccess);
    EXPECT_EQ(query(event), kNotReady);
    open_gate(gate);
    EXPECT_EQ(cu("cuEventSynchronize", event), kSuccess);
  }
}

TEST_F(Captured, WaitingForACapturedStreamInvalidatesTheCapture) {
  begin(stream_);
  EXPECT_EQ(synchronize(stream_), kStreamCaptureUnsupported);
  EXPECT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kStreamCaptureInvalidated);
  begin(stream_);
  EXPECT_EQ(cu("cuStreamQuery", stream_), kStreamCaptureUnsupported);
  EXPECT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kStreamCaptureInvalidated);
}

// Effect of a thread that polls events on a capture of the training thread.
TEST_F(Captured, AQueryInAnotherThreadInvalidatesAGlobalCapture) {
  const simulated_cuda::CudaEvent unrelated = make_event();
  record(unrelated, stream_);
  synchronize(stream_);
  const auto ask = [&] { return query(unrelated); };
  begin(stream_, kCaptureGlobal);
  EXPECT_EQ(in_another_thread(context_, kCaptureRelaxed, ask), kSuccess);
  EXPECT_EQ(in_another_thread(context_, kCaptureThreadLocal, ask), kSuccess);
  EXPECT_EQ(status(stream_), kCaptureActive);
  EXPECT_EQ(in_another_thread(context_, kCaptureGlobal, ask), kStreamCaptureUnsupported);
  EXPECT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kStreamCaptureInvalidated);

  begin(stream_, kCaptureThreadLocal);
  EXPECT_EQ(in_another_thread(context_, kCaptureGlobal, ask), kSuccess);
  EXPECT_EQ(ask(), kStreamCaptureUnsupported) << "in the thread that captures";
  cu("cuStreamEndCapture", stream_, &graph_);

  begin(stream_, kCaptureRelaxed);
  EXPECT_EQ(ask(), kSuccess);
  EXPECT_EQ(in_another_thread(context_, kCaptureGlobal, ask), kSuccess);
  EXPECT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kSuccess);
}

TEST_F(Captured, UnsafeCallsBreakIt) {
  std::array<std::uint32_t, 4> words{};
  begin(stream_);
  EXPECT_EQ(cu("cuMemHostRegister_v2", static_cast<void*>(words.data()), sizeof words, 0U), kStreamCaptureUnsupported);
  EXPECT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kStreamCaptureInvalidated);
}

TEST_F(Captured, MemoryOperationsBreakItUnlessTheDriverCanCaptureThem) {
  std::array<std::uint32_t, 4> words{};
  ASSERT_EQ(cu("cuMemHostRegister_v2", static_cast<void*>(words.data()), sizeof words, 0U), kSuccess);
  const auto pointer = reinterpret_cast<simulated_cuda::DevicePointer>(words.data());
  begin(stream_);
  EXPECT_EQ(cu("cuStreamWriteValue32_v2", stream_, pointer, 5U, 0U), kStreamCaptureUnsupported);
  EXPECT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kStreamCaptureInvalidated);
  cu("perseus_simulated_configure", "capture_memory_operations=1");
  begin(stream_);
  EXPECT_EQ(cu("cuStreamWriteValue32_v2", stream_, pointer, 5U, 0U), kSuccess);
  ASSERT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kSuccess);
  EXPECT_EQ(words[0], 0U);
  simulated_cuda::CudaGraphExecutable executable = nullptr;
  cu("cuGraphInstantiateWithFlags", &executable, graph_, 0ULL);
  cu("cuGraphLaunch", executable, stream_);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  EXPECT_EQ(words[0], 5U);
  cu("cuMemHostUnregister", static_cast<void*>(words.data()));
}

TEST_F(Captured, OtherStreamsJoinByEventsAndMustBeJoined) {
  const simulated_cuda::CudaStream other = make_stream();
  const simulated_cuda::CudaEvent fork = make_event(), join = make_event();
  begin(stream_);
  record(fork, stream_);
  ASSERT_EQ(cu("cuStreamWaitEvent", other, fork, 0U), kSuccess);
  EXPECT_EQ(status(other), kCaptureActive);
  launch(short_, other);
  EXPECT_EQ(cu("cuStreamEndCapture", other, &graph_), kStreamCaptureUnmatched);
  record(join, other);
  cu("cuStreamWaitEvent", stream_, join, 0U);
  EXPECT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kSuccess);
  EXPECT_EQ(status(other), kCaptureNone);

  begin(stream_);
  record(fork, stream_);
  cu("cuStreamWaitEvent", other, fork, 0U);
  launch(short_, other);
  EXPECT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kStreamCaptureUnjoined);
}

TEST_F(Captured, WorkOutsideOfTheCaptureCannotBeWaitedFor) {
  const simulated_cuda::CudaEvent outside = make_event();
  record(outside, stream_);
  const simulated_cuda::CudaStream other = make_stream();
  begin(other);
  EXPECT_EQ(cu("cuStreamWaitEvent", other, outside, 0U), kStreamCaptureIsolation);
  EXPECT_EQ(cu("cuStreamEndCapture", other, &graph_), kStreamCaptureInvalidated);
}

TEST_F(Captured, TheLegacyStreamCannotBeCapturedNorUsedBesideACaptureOfABlockingStream) {
  const simulated_cuda::CudaStream legacy = nullptr, blocking = make_stream(kStreamDefault);
  EXPECT_EQ(begin(legacy), kStreamCaptureUnsupported);
  begin(blocking);
  EXPECT_EQ(status(legacy), -kStreamCaptureImplicit);
  EXPECT_EQ(status(blocking), kCaptureActive);
  EXPECT_EQ(launch(short_, legacy), kStreamCaptureImplicit);
  EXPECT_EQ(cu("cuStreamEndCapture", blocking, &graph_), kStreamCaptureInvalidated);
}

TEST_F(Captured, OnlyTheThreadThatBeganItEndsIt) {
  begin(stream_);
  EXPECT_EQ(in_another_thread(context_, kCaptureGlobal, [&] { return cu("cuStreamEndCapture", stream_, &graph_); }),
            kStreamCaptureWrongThread);
  EXPECT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kSuccess);
  EXPECT_EQ(cu("cuStreamEndCapture", stream_, &graph_), kIllegalState);
}

}  // namespace
}  // namespace perseus::testing
