// Clocks timed by the device: the whole client on the simulated CUDA driver. Its streams run long after the host has
// enqueued, and stop at gates that the test opens one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/simulation/simulated_cuda/cuda.h"
#include "tests/support/signal_process.h"
#include "tests/training/client/scripted_server.h"
#include "training/client/training_client.h"

namespace perseus::client {
namespace {

using simulated_cuda::kSuccess;
using simulated_cuda::Stamp;

constexpr int kHigh = 1400, kLow = 700;

class DeviceTime : public testing::CudaTest {
 protected:
  DeviceTime() {
    ::setenv("PERSEUS_CUDA", CUDA_SIMULATED, 1);
    const std::string files = ::getenv("PERSEUS_SIMULATED_GPUS");
    const std::string file = files.substr(0, files.find(':'));
    gpu_ = std::move(simulated_gpu::SimulatedGpu::attach(file).value());
    options_.device = "simulated:" + file;
    options_.helper = PERSEUS_CLOCKD;
    options_.timing = hasty();
    options_.start_limit_s = 60;
    options_.microbatches = 2;
    options_.plan_tolerance = -1;  // opening gates takes time
    options_.log = said_.log();
    server_ =
        std::make_unique<ScriptedServer>([this](const http::HttpRequest& request) { return well(request, plan_); });
    options_.server = server_->url();
  }
  ~DeviceTime() override {
    client_.reset();
    open_all();
    ::unsetenv("PERSEUS_CUDA");
  }

  void start() {
    client_ = std::make_unique<TrainingClient>(options_);
    client_->start({});
  }
  /// Enqueues a computation behind a gate; it does not begin before the test opens the gate.
  void enqueue(model::Instruction instruction, int microbatch) {
    gates_.push_back(close_gate(stream_));
    client_->calls().set_speed(instruction, microbatch, 0);
    client_->calls().begin(instruction, microbatch, 0);
    ASSERT_EQ(launch(short_, stream_), kSuccess);
    client_->calls().end(instruction);
    ASSERT_EQ(stamp(stream_, stamps_.emplace_back()), kSuccess);
    ASSERT_EQ(record(stamped_.emplace_back(make_event()), stream_), kSuccess);
  }
  void enqueue_step() {
    client_->calls().step_begin(true);
    for (const int microbatch : order_) enqueue(model::Instruction::forward, microbatch);
    for (const int microbatch : order_) enqueue(model::Instruction::backward, microbatch);
    client_->calls().step_end();
  }
  /// Runs the first steps, before a plan exists.
  bool gets_plan() {
    return comes_true([&] {
      enqueue_step();
      open_all();
      return statistics().state == PERSEUS_PLANNED;
    });
  }
  void open_next() { open_gate(gates_[opened_++]); }
  void open_all() {
    while (opened_ < gates_.size()) open_next();
    EXPECT_EQ(synchronize(stream_), kSuccess);
  }
  void forget_what_ran() {
    open_all();
    gates_.clear();
    stamps_.clear();
    stamped_.clear();
    opened_ = 0;
  }
  bool clock_becomes(int mhz) {
    return comes_true([&] { return gpu_->clock() == Megahertz(mhz); });
  }
  perseus_statistics statistics() {
    perseus_statistics s{};
    client_->statistics(s);
    return s;
  }
  /// Opens the gates one by one, each when the clock of the computation behind it is set.
  void expect_clocks(const std::vector<int>& clocks) {
    for (const int mhz : clocks) {
      ASSERT_TRUE(clock_becomes(mhz)) << "computation " << opened_ << ": " << client_->status();
      const std::size_t ran = opened_;
      open_next();
      // The device must pass the gate; otherwise the clock awaited next would not be the next computation's.
      ASSERT_TRUE(comes_true([&] { return stamp_is_there(ran); }));
    }
    open_all();
    for (std::size_t i = 0; i < clocks.size(); ++i) EXPECT_EQ(stamps_[i].kernel_clock_mhz, clocks[i]) << i;
  }
  bool stamp_is_there(std::size_t i) { return query(stamped_[i]) == kSuccess; }

  // Forward 0 and 1, backward 0 and 1.
  std::string plan_ = plan_of(1, R"([["forward",1400],["forward",700],["backward",1400],["backward",700]])",
                              R"(,"computations":[[0,0],[1,0],[0,0],[1,0]])");
  std::vector<int> order_{0, 1};
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  ClientOptions options_;
  Said said_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<TrainingClient> client_;
  std::vector<std::uint64_t> gates_;
  std::deque<simulated_cuda::Stamp> stamps_;
  std::vector<simulated_cuda::CudaEvent> stamped_;
  std::size_t opened_ = 0;
};

class EveryWay : public DeviceTime, public ::testing::WithParamInterface<ProgressWay> {};

TEST_P(EveryWay, AHostThatIsStepsAheadChangesNoClockBeforeTheDeviceGetsThere) {
  options_.progress_way = GetParam();
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  forget_what_ran();
  for (int step = 0; step < 3; ++step) enqueue_step();
  std::vector<int> clocks;
  for (int i = 0; i < 12; ++i) clocks.push_back(i % 2 == 0 ? kHigh : kLow);
  expect_clocks(clocks);
  EXPECT_THAT(client_->status(), ::testing::HasSubstr("\"device_time\":\"" + std::string(name_of(GetParam())) + "\""));
}

INSTANTIATE_TEST_SUITE_P(DeviceTime, EveryWay,
                         ::testing::Values(ProgressWay::write_value, ProgressWay::host_function, ProgressWay::polling),
                         [](const auto& tested) {
                           std::string name(name_of(tested.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST_F(DeviceTime, AnIterationTakesTheGpusTimeNotTheHosts) {
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  forget_what_ran();
  constexpr auto kTakes = std::chrono::milliseconds(200);
  const auto began = std::chrono::steady_clock::now();
  enqueue_step();
  ASSERT_TRUE(comes_true([&] { return std::chrono::steady_clock::now() - began > kTakes; }));
  open_all();
  EXPECT_TRUE(comes_true([&] { return statistics().last_iteration_time_s >= 0.19; })) << client_->status();
}

TEST_F(DeviceTime, MicrobatchesInAnotherOrderGetTheirOwnClocks) {
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  forget_what_ran();
  order_ = {1, 0};
  for (int step = 0; step < 2; ++step) enqueue_step();
  expect_clocks({kLow, kHigh, kLow, kHigh, kLow, kHigh, kLow, kHigh});
  EXPECT_EQ(said_.count("does not fit"), 0);
}

TEST_F(DeviceTime, ADriverWithoutStreamMemoryOperationsUsesHostFunctions) {
  ASSERT_EQ(testing::cu("perseus_simulated_configure", "stream_memory_operations=0"), kSuccess);
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  EXPECT_THAT(client_->status(), ::testing::HasSubstr(R"("device_time":"host-function")"));
}

TEST_F(DeviceTime, AndOneWithoutThoseIsPolled) {
  ASSERT_EQ(testing::cu("perseus_simulated_configure", "stream_memory_operations=0,host_functions=0"), kSuccess);
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  EXPECT_THAT(client_->status(), ::testing::HasSubstr(R"("device_time":"polling")"));
}

TEST_F(DeviceTime, AnUnknownPositionOfTheGpuMeansTheHighestClock) {
  ASSERT_EQ(testing::cu("perseus_simulated_configure", "stream_memory_operations=0"), kSuccess);
  options_.progress_way = ProgressWay::write_value;
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(comes_true([&] {
    enqueue_step();
    open_all();
    return said_.count("cuStreamWriteValue32: error 801") == 1;
  })) << client_->status();
  EXPECT_FALSE(gpu_->locked());
  EXPECT_THAT(client_->status(), ::testing::HasSubstr(R"("device_time":"unknown")"));
}

TEST_F(DeviceTime, WritesThatBeginToFailMeanTheHighestClockAndOneComplaint) {
  plan_ = plan_of(1, R"([["forward",700],["forward",700],["backward",700],["backward",700]])");
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  ASSERT_TRUE(clock_becomes(kLow));
  ASSERT_EQ(testing::cu("perseus_simulated_configure", "fail=cuStreamWriteValue32_v2:999:-1"), kSuccess);
  ASSERT_TRUE(comes_true([&] {
    enqueue_step();
    open_all();
    return said_.count("the GPU's position is unknown") == 1;
  })) << client_->status();
  EXPECT_TRUE(clock_becomes(kHigh));
  for (int step = 0; step < 3; ++step) enqueue_step();
  open_all();
  EXPECT_EQ(gpu_->clock(), Megahertz(kHigh));
  EXPECT_EQ(said_.count("the GPU's position is unknown"), 1);
}

TEST_F(DeviceTime, AProgramThatUsesCudaAndGivesNoStreamGetsNoClocks) {
  plan_ = plan_of(1, R"([["forward",700],["forward",700],["backward",700],["backward",700]])");
  start();
  ASSERT_TRUE(comes_true([&] {
    enqueue_step();
    open_all();
    return said_.count("perseus_time_with_cuda()") == 1;
  })) << client_->status();
  EXPECT_FALSE(gpu_->locked());
}

TEST_F(DeviceTime, ASynchronousClientUsesNoDeviceTime) {
  plan_ = plan_of(1, R"([["forward",700],["forward",700],["backward",700],["backward",700]])");
  options_.synchronous = true;
  start();
  ASSERT_TRUE(gets_plan()) << client_->status();
  EXPECT_TRUE(comes_true([&] {
    enqueue_step();
    open_all();
    return gpu_->clock() == Megahertz(kLow);
  })) << client_->status();
}

TEST_F(DeviceTime, StepsThatReplayAGraphGetOneClock) {
  plan_ = plan_of(1, R"([["forward",700],["forward",700],["backward",700],["backward",700]])");
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  ASSERT_TRUE(comes_true([&] {
    client_->calls().step_begin(true);
    for (int kernel = 0; kernel < 4; ++kernel) EXPECT_EQ(launch(short_, stream_), kSuccess);
    client_->calls().step_end();
    open_all();
    return said_.count("one clock per step") == 1;
  })) << client_->status();
  EXPECT_TRUE(clock_becomes(kLow));
  EXPECT_EQ(said_.count("does not fit"), 0);
}

TEST_F(DeviceTime, AStepInWhichNothingRanIsNotReported) {
  options_.report_interval_s = 0.02;
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  const std::int64_t before = statistics().iteration;
  for (int step = 0; step < 12; ++step) {
    for (int empty = 0; empty < 5; ++empty) {
      client_->calls().step_begin(true);
      client_->calls().step_end();
    }
    client_->calls().step_begin(true);
    client_->calls().begin(model::Instruction::forward, 0, 0);  // an exception comes before its end
    client_->calls().step_end();
    enqueue_step();
    open_all();
  }
  EXPECT_EQ(statistics().iteration, before + 12 * 7) << "other ranks count them too";
  EXPECT_TRUE(client_->stop());
  EXPECT_EQ(said_.count("one clock per step"), 0);
  EXPECT_EQ(said_.count("does not fit"), 0);
  const std::vector<std::string> reports = server_->asked("POST", "/iterations");
  ASSERT_FALSE(reports.empty());
  for (const std::string& report : reports) {
    const std::size_t times = report.find("\"iteration_time_s\":[");
    ASSERT_NE(times, std::string::npos) << report;
    std::istringstream list(report.substr(times + 20));
    for (char next = '['; next != ']'; list >> next) {
      double time_s = 0;
      list >> time_s;
      EXPECT_GT(time_s, 0.01) << report;
    }
  }
}

TEST_F(DeviceTime, AReplacedHelperIsSaidToSetClocksWhereTheHostIsAhead) {
  options_.log_pauses = no_pause();
  options_.helper_restart = {0.01, 0.02};
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  for (int ahead = 0; ahead < 2; ++ahead) enqueue_step();
  const std::string status = client_->status(), member = "\"helper_pid\":";
  testing::signal_process(std::stoi(status.substr(status.find(member) + member.size())), SIGKILL);
  EXPECT_TRUE(comes_true([&] {
    enqueue_step();
    for (std::size_t i = 0; i < 2 * order_.size(); ++i) open_next();
    return said_.count("clocks are set again") == 1;
  })) << client_->status();
  open_all();
}

TEST_F(DeviceTime, AFirstStepOfAThreadWithoutAContextCostsOneStep) {
  plan_ = plan_of(1, R"([["forward",700],["forward",700],["backward",700],["backward",700]])");
  options_.log_pauses = no_pause();
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_EQ(testing::cu("cuCtxSetCurrent", simulated_cuda::CudaContext{}), kSuccess);
  client_->calls().step_begin(true);
  ASSERT_TRUE(comes_true([&] { return said_.count("the thread that begins the step has no CUDA context yet") == 1; }))
      << client_->status();
  ASSERT_EQ(testing::cu("cuCtxSetCurrent", context_), kSuccess);
  client_->calls().step_end();
  ASSERT_TRUE(gets_plan()) << client_->status();
  EXPECT_TRUE(clock_becomes(kLow)) << client_->status();
  EXPECT_TRUE(comes_true([&] { return said_.count("clocks change when the GPU reaches the computation") == 1; }));
}

TEST_F(DeviceTime, AStepOfAThreadWithoutAContextRunsAtTheHighestClock) {
  plan_ = plan_of(1, R"([["forward",700],["forward",700],["backward",700],["backward",700]])");
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  ASSERT_TRUE(clock_becomes(kLow)) << client_->status();
  ASSERT_EQ(testing::cu("cuCtxSetCurrent", simulated_cuda::CudaContext{}), kSuccess);
  client_->calls().step_begin(true);
  client_->calls().begin(model::Instruction::forward, 0, 0);
  client_->calls().end(model::Instruction::forward);
  EXPECT_TRUE(clock_becomes(kHigh)) << client_->status();
  ASSERT_EQ(testing::cu("cuCtxSetCurrent", context_), kSuccess);
  client_->calls().step_end();
  EXPECT_TRUE(comes_true([&] {
    enqueue_step();
    open_all();
    return gpu_->clock() == Megahertz(kLow);
  })) << client_->status();
}

TEST_F(DeviceTime, NothingIsEnqueuedIntoAStreamThatIsCaptured) {
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  enqueue_step();  // a thread of the client queries its events during the capture
  ASSERT_EQ(testing::cu("cuStreamBeginCapture_v2", stream_, static_cast<int>(simulated_cuda::kCaptureGlobal)),
            kSuccess);
  client_->calls().step_begin(true);
  client_->calls().set_speed(model::Instruction::forward, 0, 0);
  client_->calls().begin(model::Instruction::forward, 0, 0);
  EXPECT_EQ(launch(short_, stream_), kSuccess);
  client_->calls().end(model::Instruction::forward);
  client_->calls().step_end();
  const double cpu_s = statistics().client_cpu_s;
  EXPECT_TRUE(comes_true([&] { return statistics().client_cpu_s > cpu_s + 0.005; }));
  simulated_cuda::CudaGraph graph = nullptr;
  EXPECT_EQ(testing::cu("cuStreamEndCapture", stream_, &graph), kSuccess) << "the capture is still valid";
}

TEST_F(DeviceTime, ADeviceMayWriteItsPositionAfterTheClientHasStopped) {
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  forget_what_ran();
  enqueue_step();
  EXPECT_TRUE(client_->stop());
  EXPECT_TRUE(comes_true([&] { return !gpu_->locked(); }));
  client_.reset();
  open_all();
}

TEST_F(DeviceTime, HowLateAClockIsCallsIsMeasuredByTheDevicesEvents) {
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  forget_what_ran();
  for (int step = 0; step < 2; ++step) enqueue_step();
  expect_clocks({kHigh, kLow, kHigh, kLow, kHigh, kLow, kHigh, kLow});
  EXPECT_TRUE(comes_true([&] { return statistics().request_to_device_p50_s > 0; }));
}

TEST_F(DeviceTime, PositionsThatBecomeVisibleLateCountAsSwitchLatency) {
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  ASSERT_EQ(testing::cu("perseus_simulated_configure", "visible_after_us=20000"), kSuccess);
  EXPECT_TRUE(comes_true([&] {
    forget_what_ran();
    enqueue_step();
    open_all();
    for (const std::string& body : server_->asked("POST", "/ranks")) {
      const std::size_t at = body.find("\"switch_latency_s\":");
      // GPU times have a resolution of 0.1 ms, and the client does not report a latency that differs by less than 20
      // %.
      if (at != std::string::npos && std::stod(body.substr(at + 19)) >= 0.0198) return true;
    }
    return false;
  })) << client_->status();
}

/// Under a power budget with a ceiling of 700 MHz, and a lease that is longer for a plan that holds at once.
std::string budgeted(int version, const std::string& clocks, bool at_once) {
  return plan_of(version, clocks,
                 std::string(R"(,"computations":[[0,0],[1,0],[0,0],[1,0]],"budget":{"ceiling_mhz":700,)") +
                     (at_once ? R"("lease_s":7200,"at_once":true})" : R"("lease_s":3600})"));
}

TEST_F(DeviceTime, APlanThatHoldsAtOnceReplacesTheClocksOfAllThatTheDeviceHasNotReached) {
  plan_ = budgeted(1, R"([["forward",1400],["forward",1400],["backward",1400],["backward",1400]])", false);
  options_.report_interval_s = 0.02;
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  forget_what_ran();
  enqueue_step();
  enqueue_step();
  client_->calls().step_begin(true);
  enqueue(model::Instruction::forward, 0);
  ASSERT_TRUE(clock_becomes(kHigh));
  // All that is queued runs at 1400 MHz; now the device stands before the second computation of the first step.
  open_next();
  ASSERT_TRUE(comes_true([&] { return stamp_is_there(0); }));
  server_->script([](const http::HttpRequest& request) {
    return well(request, budgeted(2, R"([["forward",700],["forward",1400],["backward",700],["backward",1400]])", true),
                2);
  });
  ASSERT_TRUE(comes_true([&] {
    client_->calls().set_speed(model::Instruction::forward, 1, 0);  // one of these calls takes the plan
    return statistics().plan_version == 2;
  }));
  enqueue(model::Instruction::forward, 1);
  enqueue(model::Instruction::backward, 0);
  enqueue(model::Instruction::backward, 1);
  client_->calls().step_end();
  EXPECT_EQ(statistics().plan_version, 2);
  std::vector<int> clocks{kHigh};
  for (int i = 1; i < 12; ++i) {
    clocks.push_back(i % 2 == 0 ? kLow : kHigh);
    ASSERT_TRUE(clock_becomes(clocks.back())) << "computation " << i << ": " << client_->status();
    open_next();
    ASSERT_TRUE(comes_true([&] { return stamp_is_there(i); }));
  }
  open_all();
  for (std::size_t i = 0; i < clocks.size(); ++i) EXPECT_EQ(stamps_[i].kernel_clock_mhz, clocks[i]) << i;
  EXPECT_EQ(said_.count("does not fit"), 0);
  // Three iterations ran under two plans: they are of neither. Reports are in the order of iterations.
  const std::int64_t last = statistics().iteration - 1;
  const std::string name = R"("last_iteration":)";
  std::int64_t reported = -1, of_a_plan = -1;
  ASSERT_TRUE(comes_true([&] {
    for (const std::string& one : server_->asked("POST", "/iterations")) {
      reported = std::stoll(one.substr(one.find(name) + name.size()));
      if (one.find(R"("plan_version":0)") == std::string::npos) of_a_plan = reported;
    }
    return reported == last;
  }));
  EXPECT_LT(of_a_plan, last - 2);
}

TEST_F(DeviceTime, TheEndOfAComputationTakesAPlanThatHoldsAtOnceForTheNextOne) {
  plan_ = budgeted(1, R"([["forward",1400],["forward",1400],["backward",1400],["backward",1400]])", false);
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  forget_what_ran();
  client_->calls().step_begin(true);
  gates_.push_back(close_gate(stream_));
  client_->calls().begin(model::Instruction::forward, 0, 0);
  server_->script([](const http::HttpRequest& request) {
    return well(request, budgeted(2, R"([["forward",1400],["forward",700],["backward",1400],["backward",700]])", true),
                2);
  });
  ASSERT_TRUE(comes_true([&] { return client_->calls().has_news(); }));
  ASSERT_EQ(launch(short_, stream_), kSuccess);
  client_->calls().end(model::Instruction::forward);
  ASSERT_EQ(stamp(stream_, stamps_.emplace_back()), kSuccess);
  ASSERT_EQ(record(stamped_.emplace_back(make_event()), stream_), kSuccess);
  enqueue(model::Instruction::forward, 1);
  enqueue(model::Instruction::backward, 0);
  enqueue(model::Instruction::backward, 1);
  client_->calls().step_end();
  expect_clocks({kHigh, kLow, kHigh, kLow});
}

TEST_F(DeviceTime, ACapBoundsQueuedClocksWhileTheTrainingThreadMakesNoCall) {
  plan_ = budgeted(1, R"([["forward",1400],["forward",700],["backward",1400],["backward",700]])", false);
  start();
  ASSERT_TRUE(client_->calls().time_with_cuda(stream_));
  ASSERT_TRUE(gets_plan()) << client_->status();
  forget_what_ran();
  enqueue_step();
  ASSERT_TRUE(clock_becomes(kHigh));
  server_->script([](const http::HttpRequest& request) {
    return well(request, budgeted(2, R"([["forward",700],["forward",700],["backward",700],["backward",700]])", true),
                2);
  });
  ASSERT_TRUE(clock_becomes(kLow)) << client_->status();
  open_all();
  for (const Stamp& stamp : stamps_) EXPECT_EQ(stamp.kernel_clock_mhz, kLow);
}

}  // namespace
}  // namespace perseus::client
