// Misuse, faults and injected errors of the simulated CUDA driver.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <future>

#include "cuda.h"

namespace perseus::testing {
namespace {

using Errors = CudaTest;

TEST_F(Errors, AThreadWithoutAContextCanDoNothing) {
  std::async(std::launch::async, [&] {
    simulated_cuda::CudaContext current = context_;
    EXPECT_EQ(cu("cuCtxGetCurrent", &current), kSuccess);
    EXPECT_EQ(current, nullptr);
    simulated_cuda::CudaEvent event = nullptr;
    EXPECT_EQ(cu("cuEventCreate", &event, 0U), kInvalidContext);
    EXPECT_EQ(launch(short_, stream_), kInvalidContext);
  }).get();
}

TEST_F(Errors, ContextsAreAStackOfEachThread) {
  simulated_cuda::CudaContext second = nullptr, found = nullptr;
  ASSERT_EQ(cu("cuCtxCreate_v2", &second, 0U, 0), kSuccess);
  cu("cuCtxGetCurrent", &found);
  EXPECT_EQ(found, second);
  EXPECT_EQ(cu("cuCtxPopCurrent_v2", &found), kSuccess);
  EXPECT_EQ(found, second);
  cu("cuCtxGetCurrent", &found);
  EXPECT_EQ(found, context_);
  cu("cuCtxPushCurrent_v2", second);
  simulated_cuda::CudaEvent of_second = nullptr;
  cu("cuEventCreate", &of_second, 0U);
  EXPECT_EQ(cu("cuCtxDestroy_v2", second), kSuccess);
  EXPECT_EQ(query(of_second), kInvalidHandle) << "gone with its context";
  EXPECT_EQ(cu("cuCtxSetCurrent", second), kContextIsDestroyed);
}

TEST_F(Errors, AContextThatIsDestroyedElsewhereIsOfNoUseHere) {
  simulated_cuda::CudaContext second = nullptr;
  ASSERT_EQ(cu("cuCtxCreate_v2", &second, 0U, 0), kSuccess);
  std::async(std::launch::async, [&] { EXPECT_EQ(cu("cuCtxDestroy_v2", second), kSuccess); }).get();
  EXPECT_EQ(cu("cuCtxSynchronize"), kContextIsDestroyed);
  simulated_cuda::CudaContext popped = nullptr;
  cu("cuCtxPopCurrent_v2", &popped);
}

TEST_F(Errors, HandlesOfNothingAreRefused) {
  auto* const stream = reinterpret_cast<simulated_cuda::CudaStream>(0x1000);
  auto* const event = reinterpret_cast<simulated_cuda::CudaEvent>(0x2000);
  EXPECT_EQ(launch(short_, stream), kInvalidHandle);
  EXPECT_EQ(record(event, stream_), kInvalidHandle);
  EXPECT_EQ(query(event), kInvalidHandle);
  EXPECT_EQ(cu("cuStreamSynchronize", stream), kInvalidHandle);
  EXPECT_EQ(cu("cuEventDestroy_v2", event), kInvalidHandle);
  const simulated_cuda::CudaEvent twice = make_event();
  EXPECT_EQ(cu("cuEventDestroy_v2", twice), kSuccess);
  EXPECT_EQ(cu("cuEventDestroy_v2", twice), kInvalidHandle);
}

TEST_F(Errors, EventsAndStreamsOfTwoContextsDoNotMix) {
  const simulated_cuda::CudaEvent event = make_event();
  simulated_cuda::CudaContext second = nullptr;
  ASSERT_EQ(cu("cuCtxCreate_v2", &second, 0U, 1), kSuccess);
  const simulated_cuda::CudaStream stream = make_stream();
  EXPECT_EQ(record(event, stream), kInvalidHandle);
  cu("cuCtxDestroy_v2", second);
}

TEST_F(Errors, AForkedChildHasNoCuda) {
  const pid_t child = fork();
  if (child == 0) _exit(cu("cuCtxSynchronize") == kNotInitialized ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Errors, AKernelIsAComputationOfTheGpu) {
  simulated_cuda::CudaModule module = nullptr;
  simulated_cuda::CudaFunction function = nullptr;
  ASSERT_EQ(cu("cuModuleLoadData", &module, static_cast<const void*>("any")), kSuccess);
  EXPECT_EQ(cu("cuModuleGetFunction", &function, module, "matmul"), kNotFound);
  void** const none = nullptr;
  EXPECT_EQ(cu("cuLaunchKernel", short_, 0U, 1U, 1U, 1U, 1U, 1U, 0U, stream_, none, none), kInvalidValue);
}

TEST_F(Errors, AnyFunctionCanBeMadeToFail) {
  const simulated_cuda::CudaEvent event = make_event();
  ASSERT_EQ(cu("perseus_simulated_configure", "fail=cuEventQuery:999:2:1,fail=cuEventRecord:700:1"), kSuccess);
  EXPECT_EQ(query(event), kSuccess) << "after 1";
  EXPECT_EQ(query(event), kUnknown);
  EXPECT_EQ(query(event), kUnknown);
  EXPECT_EQ(query(event), kSuccess) << "2 times";
  EXPECT_EQ(record(event, stream_), kIllegalAddress);
  EXPECT_EQ(record(event, stream_), kSuccess);
  EXPECT_EQ(cu("perseus_simulated_configure", "visible_after=1"), kInvalidValue);
  EXPECT_EQ(cu("perseus_simulated_configure", "fail=cuInit"), kInvalidValue);
}

TEST_F(Errors, ErrorsHaveTheDriversNames) {
  const char* text = nullptr;
  EXPECT_EQ(cu("cuGetErrorName", 600, &text), kSuccess);
  EXPECT_STREQ(text, "CUDA_ERROR_NOT_READY");
  EXPECT_EQ(cu("cuGetErrorString", 801, &text), kSuccess);
  EXPECT_STREQ(text, "operation not supported");
  EXPECT_EQ(cu("cuGetErrorName", 12345, &text), kInvalidValue);
}

TEST_F(Errors, SymbolsAreFoundByTheVersionTheirCallerWasBuiltFor) {
  void* found = nullptr;
  int status = -1;
  EXPECT_EQ(cu("cuGetProcAddress_v2", "cuStreamWriteValue32", &found, 12000, std::uint64_t{0}, &status), kSuccess);
  EXPECT_EQ(found, cuda_symbol("cuStreamWriteValue32_v2"));
  EXPECT_EQ(cu("cuGetProcAddress_v2", "cuStreamWriteValue32", &found, 11000, std::uint64_t{0}, &status), kSuccess);
  EXPECT_EQ(found, cuda_symbol("cuStreamWriteValue32"));
  EXPECT_EQ(cu("cuGetProcAddress_v2", "cuNothing", &found, 12000, std::uint64_t{0}, &status), kNotFound);
  EXPECT_EQ(status, 1);
}

TEST_F(Errors, TheDeviceIsTheOneThatNvmlHas) {
  int count = 0;
  EXPECT_EQ(cu("cuDeviceGetCount", &count), kSuccess);
  EXPECT_EQ(count, kGpus);
  std::array<char, 32> address{};
  ASSERT_EQ(cu("cuDeviceGetPCIBusId", address.data(), 32, 0), kSuccess);
  const std::string files = getenv("PERSEUS_SIMULATED_GPUS");
  const auto gpu = simulated_gpu::SimulatedGpu::attach(files.substr(0, files.find(':')));
  EXPECT_EQ("0000" + std::string(address.data()), (*gpu)->pci_bus_id());
  EXPECT_EQ(cu("cuDeviceGetPCIBusId", address.data(), 5, 0), kInvalidValue);
  int ordinal = 0;
  EXPECT_EQ(cu("cuDeviceGet", &ordinal, kGpus), kInvalidDevice);
}

/// A device that a fault leaves unusable.
template <int ordinal>
class Broken : public CudaTest {
 protected:
  Broken() : CudaTest(ordinal) {}
};
using BrokenByAWrite = Broken<2>;
using BrokenByAnAbort = Broken<3>;

TEST_F(BrokenByAWrite, AWriteToMemoryThatIsNoLongerRegisteredIsAFaultForGood) {
  std::array<std::uint32_t, 4> words{};
  ASSERT_EQ(cu("cuMemHostRegister_v2", static_cast<void*>(words.data()), sizeof words, 0U), kSuccess);
  const std::uint64_t gate = close_gate(stream_);
  ASSERT_EQ(
      cu("cuStreamWriteValue32_v2", stream_, reinterpret_cast<simulated_cuda::DevicePointer>(words.data()), 5U, 0U),
      kSuccess);
  ASSERT_EQ(cu("cuMemHostUnregister", static_cast<void*>(words.data())), kSuccess);
  const simulated_cuda::CudaEvent event = make_event();
  open_gate(gate);
  EXPECT_EQ(synchronize(stream_), kIllegalAddress);
  EXPECT_EQ(words[0], 0U);
  EXPECT_EQ(launch(short_, stream_), kIllegalAddress);
  EXPECT_EQ(query(event), kIllegalAddress);
  simulated_cuda::CudaEvent more = nullptr;
  EXPECT_EQ(cu("cuEventCreate", &more, 0U), kIllegalAddress);
}

TEST_F(BrokenByAnAbort, AnAbortEndsEveryWait) {
  close_gate(stream_);
  const simulated_cuda::CudaEvent event = make_event();
  record(event, stream_);
  auto waiting = std::async(std::launch::async, [&] {
    cu("cuCtxSetCurrent", context_);
    return cu("cuEventSynchronize", event);
  });
  EXPECT_EQ(cu("perseus_simulated_abort", context_), kSuccess);
  EXPECT_EQ(waiting.get(), kLaunchFailed);
}

}  // namespace
}  // namespace perseus::testing
