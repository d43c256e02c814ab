// The simulated CUDA driver, loaded as a program loads libcuda.so.1: by name.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "simulation/simulated_cuda/extension.h"
#include "simulation/simulated_gpu/simulated_gpu.h"

namespace perseus::testing {

using namespace simulated_cuda;

inline void* cuda_symbol(const char* name) {
  static void* const library = dlopen(CUDA_SIMULATED, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return dlsym(library, name);
}

/// cu("cuEventQuery", event): the arguments must have the types of the function's parameters.
template <class... Arguments>
int cu(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(cuda_symbol(name));
  EXPECT_NE(function, nullptr) << name;
  return function != nullptr ? function(arguments...) : -1;
}

inline constexpr int kGpus = 5;
inline constexpr double kLongS = 0.2, kShortS = 0.02;

/// GPUs for all tests of this process; a test that breaks a device permanently takes its own.
class GpusOfProcess {
 public:
  GpusOfProcess() {
    folder_ = (std::filesystem::temp_directory_path() / "perseus-cuda-XXXXXX").string();
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    simulated_gpu::SimulatedGpuSpec spec;
    spec.clocks = {Megahertz(1400), Megahertz(700)};
    spec.computations = {{"long", {Seconds(kLongS), Seconds(2 * kLongS)}, {Watts(400), Watts(200)}},
                         {"short", {Seconds(kShortS), Seconds(2 * kShortS)}, {Watts(400), Watts(200)}}};
    spec.blocking_power = {Watts(80), Watts(80)};
    spec.power_limit = spec.default_power_limit = Watts(500);
    std::string files;
    for (int i = 0; i < kGpus; ++i) {
      const std::string file = folder_ + "/gpu_" + std::to_string(i);
      auto gpu = simulated_gpu::SimulatedGpu::create(file, spec);
      EXPECT_TRUE(gpu);
      files += (i > 0 ? ":" : "") + file;
    }
    setenv("PERSEUS_SIMULATED_GPUS", files.c_str(), 1);
    EXPECT_EQ(cu("cuInit", 0U), kSuccess);
  }
  GpusOfProcess(const GpusOfProcess&) = delete;
  GpusOfProcess& operator=(const GpusOfProcess&) = delete;
  ~GpusOfProcess() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  static void need() { static const GpusOfProcess all; }

 private:
  std::string folder_;
};

/// A context of a device, current in this thread; kernels and messages of a test.
class CudaTest : public ::testing::Test {
 protected:
  explicit CudaTest(int ordinal = 0) {
    GpusOfProcess::need();
    EXPECT_EQ(cu("perseus_simulated_configure", ""), kSuccess);
    EXPECT_EQ(cu("cuCtxCreate_v2", &context_, 0U, ordinal), kSuccess);
    simulated_cuda::CudaModule module = nullptr;
    EXPECT_EQ(cu("cuModuleLoadData", &module, static_cast<const void*>("any")), kSuccess);
    EXPECT_EQ(cu("cuModuleGetFunction", &long_, module, "long"), kSuccess);
    EXPECT_EQ(cu("cuModuleGetFunction", &short_, module, "short"), kSuccess);
    stream_ = make_stream();
  }
  ~CudaTest() override {
    EXPECT_EQ(cu("perseus_simulated_configure", ""), kSuccess);
    if (context_ != nullptr) {
      cu("cuCtxSynchronize");
      EXPECT_EQ(cu("cuCtxDestroy_v2", context_), kSuccess);
    }
  }

  static simulated_cuda::CudaStream make_stream(unsigned flags = kStreamNonBlocking) {
    simulated_cuda::CudaStream stream = nullptr;
    EXPECT_EQ(cu("cuStreamCreate", &stream, flags), kSuccess);
    return stream;
  }
  static simulated_cuda::CudaEvent make_event(unsigned flags = kEventDefault) {
    simulated_cuda::CudaEvent event = nullptr;
    EXPECT_EQ(cu("cuEventCreate", &event, flags), kSuccess);
    return event;
  }
  static int launch(simulated_cuda::CudaFunction function, simulated_cuda::CudaStream stream) {
    void** const none = nullptr;
    return cu("cuLaunchKernel", function, 1U, 1U, 1U, 1U, 1U, 1U, 0U, stream, none, none);
  }
  static int record(simulated_cuda::CudaEvent event, simulated_cuda::CudaStream stream) {
    return cu("cuEventRecord", event, stream);
  }
  static int query(simulated_cuda::CudaEvent event) { return cu("cuEventQuery", event); }
  static int synchronize(simulated_cuda::CudaStream stream) { return cu("cuStreamSynchronize", stream); }
  static int stamp(simulated_cuda::CudaStream stream, simulated_cuda::Stamp& stamp) {
    return cu("perseus_simulated_stream_stamp", stream, &stamp);
  }

  /// The stream stands still until open(gate).
  std::uint64_t close_gate(simulated_cuda::CudaStream stream) {
    static std::uint64_t next = 1;
    EXPECT_EQ(cu("perseus_simulated_stream_await", stream, next, 0.0), kSuccess);
    return next++;
  }
  void open_gate(std::uint64_t gate) { EXPECT_EQ(cu("perseus_simulated_deliver", context_, gate, now_s()), kSuccess); }
  static double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  template <class Condition>
  static bool comes_true(Condition condition) {
    const double until_s = now_s() + 60;
    while (!condition()) {
      if (now_s() > until_s) return false;
      std::this_thread::yield();
    }
    return true;
  }

  simulated_cuda::CudaContext context_ = nullptr;
  simulated_cuda::CudaFunction long_ = nullptr, short_ = nullptr;
  simulated_cuda::CudaStream stream_ = nullptr;
};

}  // namespace perseus::testing
