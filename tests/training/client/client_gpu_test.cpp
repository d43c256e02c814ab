// The whole client on a simulated GPU with the real helper process; injects every device fault.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "simulation/simulated_gpu/simulated_driver.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "tests/support/signal_process.h"
#include "tests/training/client/scripted_server.h"
#include "tests/training/device/environment.h"
#include "tests/training/device/nvml_stand_in.h"
#include "tests/training/device/zeusd_stand_in.h"
#include "training/client/training_client.h"
#include "training/device/backends.h"
#include "training/device/open_gpu.h"

namespace perseus::client {
namespace {

class ClientGpuTest : public ::testing::Test {
 protected:
  ClientGpuTest() {
    std::string name = (std::filesystem::temp_directory_path() / "perseus_client_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    ::setenv("PERSEUS_RUNTIME_DIR", folder_.c_str(), 1);  // no lease outlives its GPU's file
    for (const int mhz : {1410, 1200, 900}) {
      spec.clocks.emplace_back(mhz);
      spec.blocking_power.emplace_back(80);
    }
    spec.computations = {
        {"forward", {Seconds(0.002), Seconds(0.003), Seconds(0.004)}, {Watts(300), Watts(250), Watts(200)}},
        {"backward", {Seconds(0.004), Seconds(0.006), Seconds(0.008)}, {Watts(300), Watts(250), Watts(200)}}};
    spec.counter_refresh = Seconds(0.02);
    gpu = std::move(simulated_gpu::SimulatedGpu::create(folder_ + "/gpu", spec).value());
    options.device = "simulated:" + folder_ + "/gpu";
    options.helper = PERSEUS_CLOCKD;
    options.timing = hasty();
    options.start_limit_s = 60;
    options.report_interval_s = 0.02;
    options.microbatches = 2;
    options.log = said.log();
    options.log_pauses = no_pause();
    options.plan_tolerance = -1;  // the promises of these plans do not hold
  }
  ~ClientGpuTest() override {
    client.reset();
    ::unsetenv("PERSEUS_RUNTIME_DIR");
    std::filesystem::remove_all(folder_);
  }

  void start() {
    client = std::make_unique<TrainingClient>(options);
    client->start({});
  }
  void compute(model::Instruction instruction) {
    client->calls().set_speed(instruction, -1, -1);
    client->calls().begin(instruction, -1, -1);
    gpu->run(static_cast<int>(instruction));
    client->calls().end(instruction);
  }
  void iterate(int backwards = 2) {
    client->calls().step_begin(true);
    compute(model::Instruction::forward);
    compute(model::Instruction::forward);
    for (int i = 0; i < backwards; ++i) compute(model::Instruction::backward);
    client->calls().step_end();
  }
  /// Trains until the condition holds; false after two minutes, because edges of the counter come late on a busy
  /// machine.
  bool trains_until(const std::function<bool()>& so, int backwards = 2) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (std::chrono::steady_clock::now() < limit) {
      iterate(backwards);
      if (so()) return true;
    }
    return false;
  }
  int helper_pid() {
    const std::string status = client->status();
    const std::string member = "\"helper_pid\":";
    const int helper = std::stoi(status.substr(status.find(member) + member.size()));
    EXPECT_GT(helper, 1);
    return helper;
  }
  perseus_statistics statistics() {
    perseus_statistics s{};
    client->statistics(s);
    return s;
  }

  std::string folder_;
  simulated_gpu::SimulatedGpuSpec spec;
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu;
  ClientOptions options;
  Said said;
  std::unique_ptr<TrainingClient> client;
};

const std::string window_plan =
    R"({"rank":0,"version":1,"kind":"profiling_window","from_iteration":0,"window":4,"iterations":2,"clocks":)"
    R"([["forward",1200],["forward",900],["backward",900],["backward",1410]]})";
/// A plan with every computation at the lowest clock, which promises that this costs no time.
std::string false_promise(int version, const std::string& promised_s) {
  return R"({"rank":0,"version":)" + std::to_string(version) +
         R"(,"kind":"plan","from_iteration":0,"iteration_time_s":)" + promised_s +
         R"(,"reason":"a test","clocks":[["forward",900],["forward",900],["backward",900],["backward",900]]})";
}

const std::string slow_plan = plan_of(1, R"([["forward",900],["forward",900],["backward",900],["backward",900]])");

TEST_F(ClientGpuTest, ClocksAreThePlansThenTheHighestWhenTheServerGoesAndThePlansAgain) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  EXPECT_STREQ(client->job(), "j1");
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  EXPECT_EQ(statistics().state, PERSEUS_PLANNED);
  EXPECT_EQ(statistics().plan_version, 1);
  server.script([](const http::HttpRequest&) { return std::pair(500, std::string("broken")); });
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(1410); })) << client->status();
  // One request can fail while an answer from before is still on its way to another thread, which "answers again".
  EXPECT_TRUE(eventually([&] {
    return statistics().state == PERSEUS_MAXIMUM_CLOCK && said.count("answered 500") == 1 + said.count("answers again");
  })) << client->status();
  server.script([](const http::HttpRequest& request) { return well(request, slow_plan); });
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  client->calls().step_begin(false);  // evaluation
  EXPECT_TRUE(eventually([&] { return gpu->clock() == Megahertz(1410); }));
  client->calls().step_end();
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  EXPECT_TRUE(client->stop());
  EXPECT_TRUE(eventually([&] { return !gpu->locked(); }));
}

TEST_F(ClientGpuTest, AClockThatCannotBeGivenBackAtTheEndIsReported) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  gpu->inject("nvmlDeviceResetGpuLockedClocks", 15, -1);
  EXPECT_TRUE(client->stop());
  EXPECT_EQ(said.count("may be stuck at 900 MHz"), 1);
  EXPECT_EQ(said.count("perseus-clockd --restore"), 1);
  gpu->inject("nvmlDeviceResetGpuLockedClocks", 0, 0);
}

/// As when a container loses its GPU (unknown error for ever), while CUDA goes on.
TEST_F(ClientGpuTest, ADriverThatAnswersNoCallIsReportedWithTheClockThatStays) {
  const std::string plan = plan_of(1, R"([["forward",900],["forward",1200],["backward",1200],["backward",900]])");
  ScriptedServer server([&](const http::HttpRequest& request) { return well(request, plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  for (const char* function : {"nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"}) {
    gpu->inject(function, 999, -1);
  }
  EXPECT_TRUE(trains_until([&] { return said.count("the driver has answered no call for 5 s") > 0; }));
  EXPECT_TRUE(trains_until([&] { return said.count("may be stuck at") > 0; })) << client->status();
  EXPECT_EQ(statistics().controls_clock, 0);
  EXPECT_TRUE(client->stop());
  for (const char* function : {"nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"}) {
    gpu->inject(function, 0, 0);
  }
  EXPECT_TRUE(eventually([&] {
    (void)std::system(PERSEUS_CLOCKD " --restore > /dev/null 2>&1");
    return !gpu->locked();
  }));
}

TEST_F(ClientGpuTest, ALockOfAnotherProcessIsReportedAtTheStartAndThatItIsGoneAtTheEnd) {
  auto launcher = simulated_gpu::SimulatedDriver::attach(folder_ + "/gpu");
  ASSERT_TRUE(launcher);
  ASSERT_EQ((*launcher)->lock_clocks(Megahertz(1200), Megahertz(1200)), 0);
  start();
  EXPECT_EQ(said.count("runs at 1200 of 1410 MHz"), 1);
  EXPECT_EQ(said.count("PERSEUS_CEILING_MHZ=1200"), 1);
  EXPECT_TRUE(gpu->locked()) << "without a plan, its lock stays";
  EXPECT_TRUE(client->stop());
  EXPECT_EQ(said.count("is gone"), 0);
  client.reset();
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  EXPECT_TRUE(client->stop());
  EXPECT_EQ(said.count("the lock at 1200 MHz that was there before is gone"), 1);
}

TEST_F(ClientGpuTest, TheFirstClockOfAStepIsRequestedAtTheEndOfTheStepBefore) {
  const std::string plan = plan_of(1, R"([["forward",900],["forward",1200],["backward",1200],["backward",1410]])");
  ScriptedServer server([&](const http::HttpRequest& request) { return well(request, plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return statistics().state == PERSEUS_PLANNED; })) << client->status();
  iterate();
  EXPECT_TRUE(eventually([&] { return gpu->clock() == Megahertz(900); })) << gpu->clock().value();
}

TEST_F(ClientGpuTest, TheNextComputationsClockIsRequestedWhenTheOneBeforeEnds) {
  const std::string plan = plan_of(1, R"([["forward",900],["forward",1200],["backward",1200],["backward",1410]])");
  ScriptedServer server([&](const http::HttpRequest& request) { return well(request, plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return statistics().state == PERSEUS_PLANNED; })) << client->status();
  client->calls().step_begin(true);
  compute(model::Instruction::forward);
  EXPECT_TRUE(eventually([&] { return gpu->clock() == Megahertz(1200); })) << gpu->clock().value();
}

TEST_F(ClientGpuTest, BeginAndEndAloneFollowThePlanAndLeaveOneThatDoesNotFit) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  const auto step = [&](int backwards) {
    client->calls().step_begin(true);
    for (int i = 0; i < 2 + backwards; ++i) {
      const model::Instruction instruction = i < 2 ? model::Instruction::forward : model::Instruction::backward;
      client->calls().begin(instruction, -1, -1);
      gpu->run(static_cast<int>(instruction));
      client->calls().end(instruction);
    }
    client->calls().step_end();
  };
  ASSERT_TRUE(eventually([&] { return step(2), gpu->clock() == Megahertz(900); })) << client->status();
  step(3);
  EXPECT_TRUE(eventually([&] { return gpu->clock() == Megahertz(1410); })) << client->status();
}

TEST_F(ClientGpuTest, AMismatchedPlanIsLoggedOnce) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return said.count("does not fit") == 1; }, 1)) << client->status();
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(1410); }, 1));
  EXPECT_EQ(said.count("does not fit"), 1);
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); }, 2)) << client->status();
  EXPECT_TRUE(eventually([&] { return said.count("the plan fits") == 1; }));
}

TEST_F(ClientGpuTest, AWindowIsReportedWithTimesAndEnergies) {
  ScriptedServer server([&](const http::HttpRequest& request) { return well(request, window_plan); });
  options.server = server.url();
  start();
  std::string report;
  ASSERT_TRUE(trains_until([&] {
    for (const std::string& one : server.asked("POST", "/iterations")) {
      if (one.find(R"("window":4)") != std::string::npos) report = one;
    }
    return !report.empty();
  })) << client->status();
  EXPECT_THAT(report, ::testing::HasSubstr(R"("iteration_energy_j":[)"));
  EXPECT_THAT(report, ::testing::HasSubstr(R"("time_s":{"forward":[[)"));
  EXPECT_EQ(statistics().state, PERSEUS_PROFILING);
  EXPECT_GT(statistics().energy_total_j, 0);
}

TEST_F(ClientGpuTest, AProgramThatUsesRocmGetsNoClocksAndOneLine) {
  void* const hip = ::dlopen(HIP_STAND_IN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(hip, nullptr) << ::dlerror();
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  EXPECT_TRUE(trains_until([&] { return said.count("on AMD GPUs there is no device time") == 1; })) << client->status();
  for (int i = 0; i < 20; ++i) iterate();
  EXPECT_FALSE(gpu->locked());
  EXPECT_EQ(said.count("no clock is set"), 1);
  client.reset();
  ::dlclose(hip);
}

TEST_F(ClientGpuTest, ARepeatedStepIsLoggedOnceAndTrainingContinues) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  client->calls().step_begin(true);
  compute(model::Instruction::forward);
  ASSERT_TRUE(trains_until([&] { return said.count("does not fit") == 1; }, 1));  // it ends with the next one
  ASSERT_TRUE(trains_until([&] { return said.count("the plan fits") == 1; }));
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  EXPECT_EQ(said.count("does not fit"), 1);
}

/// NVML's codes for "not supported" and "no permission".
class ClocksRefused : public ClientGpuTest, public ::testing::WithParamInterface<int> {};

TEST_P(ClocksRefused, IsLoggedOnceAndNoClockIsSetUntilPermitted) {
  gpu->inject("nvmlDeviceSetGpuLockedClocks", GetParam(), -1);
  options.helper_restart = {0.01, 0.02};
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return said.count("no clock is set") == 1; })) << client->status();
  ASSERT_TRUE(trains_until([&] { return statistics().helper_restarts > 3; })) << client->status();
  EXPECT_FALSE(gpu->locked());
  gpu->inject("nvmlDeviceSetGpuLockedClocks", 0, 0);
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  ASSERT_TRUE(trains_until([&] { return said.count("clocks are set again") == 1; })) << client->status();
  EXPECT_EQ(said.count("no clock is set"), 1);
  EXPECT_EQ(said.count("clocks are set again"), 1);
}

INSTANTIATE_TEST_SUITE_P(ClientGpuTest, ClocksRefused, ::testing::Values(3, 4));

TEST_F(ClientGpuTest, ADeadHelperIsLoggedOnceAndItsClockReleased) {
  options.helper_restart = {3600, 3600};
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  ASSERT_EQ(testing::signal_process(helper_pid(), SIGKILL), 0);
  ASSERT_TRUE(trains_until([&] { return said.count("no clock is set") == 1; })) << client->status();
  EXPECT_TRUE(eventually([&] { return !gpu->locked(); }));
  for (int i = 0; i < 20; ++i) iterate();
  EXPECT_FALSE(gpu->locked());
  EXPECT_EQ(statistics().controls_clock, 0);
  EXPECT_EQ(said.count("no clock is set"), 1);
}

TEST_F(ClientGpuTest, AHelperThatDiesHasASuccessor) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  options.helper_restart = {0.001, 0.001};
  start();
  for (int restarts = 1; restarts < 4; ++restarts) {
    ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
    ASSERT_EQ(testing::signal_process(helper_pid(), SIGKILL), 0);
    ASSERT_TRUE(trains_until([&] { return statistics().helper_restarts == restarts; })) << client->status();
    ASSERT_TRUE(trains_until([&] { return said.count("clocks are set again") == restarts; })) << client->status();
    EXPECT_EQ(said.count("no clock is set"), restarts);
    EXPECT_EQ(statistics().controls_clock, 1);
  }
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  EXPECT_TRUE(client->stop());
  EXPECT_TRUE(eventually([&] { return !gpu->locked(); }));
}

TEST_F(ClientGpuTest, AStepInWhichAnotherHelperTookOverIsInNoWindow) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, ""); });
  options.server = server.url();
  options.helper_restart = {0.001, 0.001};
  start();
  ASSERT_TRUE(trains_until([&] { return statistics().energy_total_j > 0; })) << client->status();
  server.script([](const http::HttpRequest& request) { return well(request, window_plan); });
  std::int64_t broken = -1;
  ASSERT_TRUE(eventually([&] {
    client->calls().step_begin(true);
    if (statistics().plan_version == 1) {
      broken = statistics().iteration;
      EXPECT_EQ(testing::signal_process(helper_pid(), SIGKILL), 0);
      EXPECT_TRUE(eventually([&] { return statistics().helper_restarts == 1; }));
    }
    for (const int i : {0, 0, 1, 1}) compute(static_cast<model::Instruction>(i));
    client->calls().step_end();
    return broken >= 0;
  }));
  const std::string member = R"("window":4,"last_iteration":)";
  std::int64_t last = -1;
  ASSERT_TRUE(trains_until([&] {
    for (const std::string& body : server.asked("POST", "/iterations")) {
      if (const auto at = body.find(member); at != std::string::npos)
        last = std::stoll(body.substr(at + member.size()));
    }
    return last >= 0;
  })) << client->status();
  EXPECT_GT(last, broken + 1);  // two iterations; the number of the later one
}

TEST_F(ClientGpuTest, ClocksThatBecomeSettableAreReportedThen) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, window_plan); });
  options.server = server.url();
  options.helper = folder_ + "/perseus-clockd";
  options.helper_restart = {0.01, 0.02};
  start();
  ASSERT_TRUE(eventually([&] { return !server.asked("POST", "/ranks").empty(); }));
  EXPECT_THAT(server.asked("POST", "/ranks").front(),
              ::testing::AllOf(::testing::HasSubstr(R"("control":"none")"),
                               ::testing::HasSubstr(R"("control_reason":"the helper )")));
  std::filesystem::create_symlink(PERSEUS_CLOCKD, options.helper);
  ASSERT_TRUE(trains_until([&] {
    const std::string request = server.asked("POST", "/ranks").back();
    return request.find(R"("clocks_mhz":[1410,1200,900])") != std::string::npos &&
           request.find(R"("control":"clocks")") != std::string::npos;
  })) << client->status();
}

TEST_F(ClientGpuTest, AHelperThatCouldNotStartIsTriedAgain) {
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  options.profile = "known";
  options.helper = folder_ + "/perseus-clockd";
  options.helper_restart = {0.01, 0.02};
  start();
  EXPECT_EQ(said.count("no clock is set"), 1);
  iterate();
  EXPECT_EQ(statistics().controls_clock, 0);
  std::filesystem::create_symlink(PERSEUS_CLOCKD, options.helper);
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  ASSERT_TRUE(trains_until([&] { return said.count("clocks are set again") == 1; })) << client->status();
  EXPECT_EQ(said.count("no clock is set"), 1);
  EXPECT_EQ(statistics().helper_restarts, 0);
}

TEST_F(ClientGpuTest, ALostDeviceIsLoggedOncePerCauseAndMeasuredAgainAfterItsReturn) {
  constexpr int lost = 15;
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, window_plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return gpu->locked(); })) << client->status();
  for (const char* const call : {"nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceSetGpuLockedClocks"}) {
    gpu->inject(call, lost, -1);
  }
  ASSERT_TRUE(trains_until([&] {
    return said.count("energy is not measured") == 1 && said.count("no clock is set") == 1;
  })) << client->status();
  const std::int64_t before = statistics().iteration;
  for (int i = 0; i < 20; ++i) iterate();
  EXPECT_EQ(statistics().iteration, before + 20);
  EXPECT_THAT(client->status(), ::testing::HasSubstr(R"("cause":"device")"));
  gpu->inject("nvmlDeviceGetTotalEnergyConsumption", 0, 0);
  ASSERT_TRUE(eventually([&] { return said.count("the device answers") == 1; })) << client->status();
  EXPECT_EQ(said.count("energy is not measured"), 1);
  EXPECT_EQ(said.count("no clock is set"), 1);
}

TEST_F(ClientGpuTest, ADeviceWithoutAListOfClocksIsNotSet) {
  gpu->inject("nvmlDeviceGetSupportedGraphicsClocks", 3, -1);
  start();
  EXPECT_EQ(said.count("nvmlDeviceGetSupportedGraphicsClocks"), 1);
  iterate();
  EXPECT_EQ(statistics().iteration, 1);
  EXPECT_FALSE(gpu->locked());
}

TEST_F(ClientGpuTest, ADeviceWithoutAnEnergyCounterReportsTimesAndLogsOnce) {
  gpu->inject("nvmlDeviceGetTotalEnergyConsumption", 3, -1);
  const std::string no_plan =
      R"({"rank":0,"version":2,"kind":"maximum_clock","from_iteration":0,"reason":"rank 0 measures no energies",)"
      R"("clocks":[]})";
  std::atomic<bool> reported{false};
  ScriptedServer server([&](const http::HttpRequest& request) {
    if (request.body.find(R"("window":4)") != std::string::npos) reported = true;
    return reported ? well(request, no_plan, 2) : well(request, window_plan);
  });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] {
    return said.count("the highest clock, no plan for job j1: rank 0 measures no energies") == 1;
  })) << client->status();
  const std::vector<std::string> reports = server.asked("POST", "/iterations");
  const auto of_window = [](const std::string& one) { return one.find(R"("window":4)") != std::string::npos; };
  const std::string report = *std::ranges::find_if(reports, of_window);
  EXPECT_THAT(report, ::testing::HasSubstr(R"("time_s":{"forward":[[)"));
  EXPECT_THAT(report, ::testing::Not(::testing::HasSubstr("energy_j")));
  EXPECT_EQ(said.count("energy is not measured"), 1);
}

TEST_F(ClientGpuTest, ARankThatCannotSetItsClockDropsNoPlan) {
  options.device = "none";
  options.plan_tolerance = 0.01;
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, false_promise(5, "10"), 5); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return statistics().state == PERSEUS_PLANNED; })) << client->status();
  for (int i = 0; i < 20; ++i) iterate();
  EXPECT_EQ(statistics().plans_dropped, 0);
  EXPECT_EQ(statistics().state, PERSEUS_PLANNED);
}

TEST_F(ClientGpuTest, IterationsThatAreTooFastAreLoggedOnceAndTrainingContinues) {
  options.device = "none";
  start();
  const auto short_step = [&] {
    client->calls().step_begin(true);
    client->calls().begin(model::Instruction::forward, 0, 0);
    client->calls().end(model::Instruction::forward);
    client->calls().step_end();
  };
  ASSERT_TRUE(eventually([&] {
    for (int i = 0; i < 1000; ++i) short_step();
    return said.count("faster than") == 1;
  }));
  for (int i = 0; i < 1000; ++i) short_step();
  EXPECT_THAT(client->status(), ::testing::HasSubstr(R"("cause":"records")"));
  ASSERT_TRUE(eventually([&] {
    short_step();
    return said.count("all recorded again") == 1;
  }));
  EXPECT_EQ(said.count("faster than"), 1);
}

TEST_F(ClientGpuTest, NoHelper) {
  options.helper = "/nowhere/perseus-clockd";
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  EXPECT_EQ(said.count("no clock is set"), 1);
  const auto profile = [&] {
    const std::string status = client->status();
    const std::size_t from = status.find("\"profile\"");
    return status.substr(from, status.find("\"wrong\"") - from);
  };
  ASSERT_TRUE(trains_until([&] { return statistics().plan_version == 1 && statistics().samples > 2; }));
  for (int news = 0; news < 3; ++news) {
    ASSERT_TRUE(trains_until([&, before = profile()] { return profile() != before; }));
  }
  EXPECT_THAT(client->status(), ::testing::HasSubstr(R"("clock_mhz":1410)"));
  EXPECT_THAT(client->status(), ::testing::Not(::testing::HasSubstr(R"("clock_mhz":900)")))
      << "it ran at no such clock";
}

TEST_F(ClientGpuTest, ARelativeFolderForLeasesIsNamedOnceAndNoClockIsSet) {
  ::setenv("PERSEUS_RUNTIME_DIR", "relative-leases", 1);
  options.helper_restart = {0.001, 0.001};
  start();
  iterate();
  iterate();
  EXPECT_EQ(said.count("no clock is set"), 1);
  EXPECT_EQ(said.count("PERSEUS_RUNTIME_DIR=relative-leases (not an absolute path); the next try is within 0.001 s"),
            1);
  EXPECT_FALSE(std::filesystem::exists("relative-leases"));
  EXPECT_EQ(gpu->clock(), Megahertz(1410));
}

TEST_F(ClientGpuTest, AdviceOnlySetsNothing) {
  options.advice_only = true;
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return statistics().plan_version == 1; }));
  EXPECT_THAT(server.asked("POST", "/ranks").front(), ::testing::HasSubstr(R"("control":"advice")"));
  for (int i = 0; i < 5; ++i) iterate();
  EXPECT_FALSE(gpu->locked());
  EXPECT_EQ(statistics().controls_clock, 0);
}

/// Each fails once: while one of them is due to fail, its function was not called.
constexpr std::array kSetters{"nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"};
constexpr int kUnknownError = 999;

TEST_F(ClientGpuTest, AWindowWithoutClocksIsMeasuredAndNothingIsSet) {
  const std::string kept = R"({"rank":0,"version":1,"kind":"profiling_window","from_iteration":0,"window":4,)"
                           R"("iterations":2,"clocks":[["forward",0],["forward",0],["backward",0],["backward",0]]})";
  for (const char* setter : kSetters) gpu->inject(setter, kUnknownError, 1);
  options.advice_only = true;
  options.switch_latency_s = 0;  // a rank that sets clocks measures it at the start
  ScriptedServer server([&](const http::HttpRequest& request) { return well(request, kept); });
  options.server = server.url();
  start();
  std::string report;
  ASSERT_TRUE(trains_until([&] {
    for (const std::string& one : server.asked("POST", "/iterations")) {
      if (one.find(R"("window":4)") != std::string::npos) report = one;
    }
    return !report.empty();
  })) << client->status();
  EXPECT_THAT(report, ::testing::AllOf(::testing::HasSubstr(R"("iteration_energy_j":[)"),
                                       ::testing::HasSubstr(R"("time_s":{"forward":[[)"),
                                       ::testing::Not(::testing::HasSubstr("missed"))));
  EXPECT_THAT(server.asked("POST", "/ranks").front(),
              ::testing::AllOf(::testing::HasSubstr(R"("clocks_mhz":[1410,1200,900])"),
                               ::testing::HasSubstr(R"("gpu":"Perseus simulated GPU")")));
  EXPECT_EQ(said.count("job j1 is being measured at the clocks that its GPUs have: none is set"), 1);
  client->stop();
  const auto driver = simulated_gpu::SimulatedDriver::attach(folder_ + "/gpu");
  for (const char* setter : kSetters) EXPECT_EQ((*driver)->fault(setter), kUnknownError) << setter;
}

/// A plan for 2 microbatches at 1200 MHz, and one for 4 at 900 MHz.
std::string shaped(int version) {
  const auto clocks = [](int microbatches, int mhz) {
    std::string text;
    for (const char* name : {"forward", "backward"}) {
      for (int i = 0; i < microbatches; ++i) {
        text += std::string(text.empty() ? "" : ",") + "[\"" + name + "\"," + std::to_string(mhz) + "]";
      }
    }
    return "[" + text + "]";
  };
  return plan_of(version, clocks(2, 1200),
                 R"(,"microbatches":2,"shapes":[{"microbatches":4,"iteration_time_s":1,"maximum_clock_time_s":1,)"
                 R"("clocks":)" +
                     clocks(4, 900) + "}]");
}

TEST_F(ClientGpuTest, AShapeThatComesBackIsReportedAndEachStepFollowsThePlanOfItsOwn) {
  const std::string first =
      plan_of(1, R"([["forward",1200],["forward",1200],["backward",1200],["backward",1200]])", R"(,"microbatches":2)");
  ScriptedServer server([&](const http::HttpRequest& request) {
    return request.path.ends_with("/shape") ? std::pair(200, std::string("{}")) : well(request, first, 1);
  });
  options.server = server.url();
  start();
  const auto step = [&](int microbatches) {
    client->calls().step_begin(true, microbatches);
    for (int i = 0; i < microbatches; ++i) compute(model::Instruction::forward);
    for (int i = 0; i < microbatches; ++i) compute(model::Instruction::backward);
    client->calls().step_end();
  };
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(1200); })) << client->status();
  for (int i = 0; i < 400 && server.asked("POST", "/ranks/0/shape").empty(); ++i) step(4);
  ASSERT_EQ(server.asked("POST", "/ranks/0/shape").size(), 1U);
  EXPECT_THAT(server.asked("POST", "/ranks/0/shape").front(), ::testing::HasSubstr(R"("microbatches":4)"));
  EXPECT_EQ(gpu->clock(), Megahertz(1410)) << "no plan yet";
  EXPECT_EQ(said.count("does not fit"), 0);
  server.script([&](const http::HttpRequest& request) { return well(request, shaped(2), 2); });
  for (int i = 0; i < 2000 && statistics().plan_version != 2; ++i) step(4);
  ASSERT_EQ(statistics().plan_version, 2);
  // Every step has another shape than the one before: each follows its plan.
  const auto planned = [&](int microbatches, Megahertz clock) {
    for (int i = 0; i < 200; ++i) {
      step(6 - microbatches);
      step(microbatches);
      if (gpu->clock() == clock) return true;
    }
    return false;
  };
  EXPECT_TRUE(planned(4, Megahertz(900)));
  EXPECT_TRUE(planned(2, Megahertz(1200)));
  EXPECT_EQ(said.count("does not fit"), 0);
  EXPECT_EQ(statistics().plan_version, 2);
}

TEST_F(ClientGpuTest, AStepWhoseShapeIsKnownAtItsEndIsNeitherAPlansNorOneAtTheHighestClock) {
  ScriptedServer server([&](const http::HttpRequest& request) {
    return request.path.ends_with("/shape") ? std::pair(200, std::string("{}")) : well(request, shaped(1), 1);
  });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(1200); })) << client->status();
  const std::int64_t from = statistics().iteration;
  for (int i = 0; i < 40; ++i) {
    client->calls().step_begin(true);
    for (int m = 0; m < 2 + 2 * (i % 2); ++m) compute(model::Instruction::forward);
    for (int m = 0; m < 2 + 2 * (i % 2); ++m) compute(model::Instruction::backward);
    client->calls().step_end();
  }
  client->stop();
  int known = 0, unknown = 0;
  for (const std::string& body : server.asked("POST", "/iterations")) {
    const auto report = boost::json::parse(body).as_object();
    if (report.at("plan_version") != 0 || !report.contains("iteration_energy_j")) continue;
    const boost::json::array& energies = report.at("iteration_energy_j").as_array();
    for (std::size_t i = 0; i < energies.size(); ++i) {
      const auto left = static_cast<std::int64_t>(energies.size() - 1 - i);
      if (report.at("last_iteration").as_int64() - left <= from) continue;
      ++(energies[i].to_number<double>() > 0 ? known : unknown);
    }
  }
  EXPECT_EQ(known, 0) << unknown;
}

TEST_F(ClientGpuTest, CallersThatNameNoChunksFollowThePlanOfAllTheirStages) {
  std::string clocks;
  for (const char* name :
       {"forward", "forward", "forward", "forward", "backward", "backward", "backward", "backward"}) {
    clocks += std::string(clocks.empty() ? "" : ",") + "[\"" + name + "\",1200]";
  }
  const std::string two_chunks = plan_of(1, "[" + clocks + "]", R"(,"microbatches":2)");
  ScriptedServer server([&](const http::HttpRequest& request) { return well(request, two_chunks, 1); });
  options.server = server.url();
  options.chunks = 2;
  start();
  const auto step = [&] {
    client->calls().step_begin(true);
    for (int i = 0; i < 4; ++i) compute(model::Instruction::forward);
    for (int i = 0; i < 4; ++i) compute(model::Instruction::backward);
    client->calls().step_end();
  };
  for (int i = 0; i < 2000 && gpu->clock() != Megahertz(1200); ++i) step();
  EXPECT_EQ(gpu->clock(), Megahertz(1200)) << client->status();
  EXPECT_EQ(said.count("does not fit"), 0);
  EXPECT_TRUE(server.asked("POST", "/ranks/0/shape").empty());
}

TEST_F(ClientGpuTest, StepsThatAllDifferAreSaidOnceAndRunAtTheHighestClock) {
  ScriptedServer server([&](const http::HttpRequest& request) {
    return request.path.ends_with("/shape") ? std::pair(200, std::string("{}")) : well(request, shaped(1), 1);
  });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(1200); })) << client->status();
  const auto step = [&](int microbatches) {
    client->calls().step_begin(true, microbatches);
    for (int i = 0; i < microbatches; ++i) compute(model::Instruction::forward);
    for (int i = 0; i < microbatches; ++i) compute(model::Instruction::backward);
    client->calls().step_end();
  };
  for (int i = 0; i < 600 && said.count("no plan can fit") == 0; ++i) step(1 + i * 7 % 10);
  ASSERT_EQ(said.count("no plan can fit"), 1);
  EXPECT_EQ(said.count("pad them"), 1);
  for (int i = 0; i < 20; ++i) step(1 + i * 7 % 10);
  EXPECT_EQ(gpu->clock(), Megahertz(1410));
  EXPECT_EQ(said.count("no plan can fit"), 1);
  EXPECT_THAT(client->status(), ::testing::HasSubstr(R"("cause":"shape")"));
  int varies = 0;
  for (const std::string& body : server.asked("POST", "/ranks/0/shape")) {
    varies += body.find("varies") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(varies, 1);
}

TEST_F(ClientGpuTest, APlanSlowerThanPromisedIsDroppedAndReportedToTheServer) {
  // Four times slower: more than the machine's load can hide.
  spec.computations[0].time = {Seconds(0.01), Seconds(0.02), Seconds(0.04)};
  spec.computations[1].time = {Seconds(0.02), Seconds(0.04), Seconds(0.08)};
  gpu = std::move(simulated_gpu::SimulatedGpu::create(folder_ + "/slow", spec).value());
  options.device = "simulated:" + folder_ + "/slow";
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, false_promise(5, "0.06"), 5); });
  options.server = server.url();
  options.plan_tolerance = 0.01;
  start();
  // Every second batch is skipped: an iteration is judged all the same.
  ASSERT_TRUE(trains_until([&] {
    client->calls().step_begin(true);
    client->calls().step_end();
    return said.count("plan 5 is dropped") == 1;
  })) << client->status();
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(1410); })) << client->status();
  ASSERT_TRUE(trains_until([&] { return server.asked("POST", "/ranks/0/plan_dropped").size() == 1; }));
  const std::string told = server.asked("POST", "/ranks/0/plan_dropped").front();
  const auto number = [&](const std::string& member) {
    const std::size_t at = told.find(member);
    return at == std::string::npos ? 0 : std::stod(told.substr(at + member.size()));
  };
  EXPECT_THAT(told, ::testing::AllOf(::testing::HasSubstr(R"("version":5)"),
                                     ::testing::HasSubstr(R"("reason":"the highest clock takes )")));
  EXPECT_GE(number("\"promised_time_s\":"), 0.06) << "an iteration at the highest clock";
  EXPECT_GT(number("\"measured_time_s\":"), number("\"promised_time_s\":")) << "of any length where the machine stalls";
  EXPECT_EQ(statistics().plans_dropped, 1);
  EXPECT_EQ(statistics().state, PERSEUS_MAXIMUM_CLOCK);
  EXPECT_THAT(client->status(), ::testing::HasSubstr(R"("cause":"slowdown")"));
  for (int i = 0; i < 20; ++i) iterate();
  EXPECT_EQ(gpu->clock(), Megahertz(1410));
  const std::string no_plan = R"({"rank":0,"version":6,"kind":"maximum_clock","from_iteration":0,)"
                              R"("reason":"maximum clock: rank 0 dropped plan 5","clocks":[]})";
  server.script([&](const http::HttpRequest& request) { return well(request, no_plan, 6); });
  ASSERT_TRUE(trains_until([&] { return statistics().plan_version == 6; })) << client->status();
  for (int i = 0; i < 5; ++i) iterate();
  EXPECT_EQ(said.count("the highest clock, no plan for job j1: rank 0 dropped plan 5"), 1);
  server.script([](const http::HttpRequest& request) { return well(request, false_promise(7, "10"), 7); });
  ASSERT_TRUE(trains_until([&] { return said.count("plan 7 is dropped") == 1; })) << "refused: 10 s is absurd";
  EXPECT_EQ(said.count("plan 6 replaces"), 0) << "no plan replaces none";
  EXPECT_EQ(said.count("is dropped"), 2);
}

TEST_F(ClientGpuTest, ClocksThatComeTooLateAreAComplaint) {
  // Every computation has another clock; a clock change takes about as long as a computation.
  for (simulated_gpu::SimulatedComputation& computation : spec.computations) {
    computation.time = {Seconds(0.005), Seconds(0.008), Seconds(0.012)};
  }
  spec.switch_latency.assign(3, Seconds(0.008));
  gpu = std::move(simulated_gpu::SimulatedGpu::create(folder_ + "/slow", spec).value());
  options.device = "simulated:" + folder_ + "/slow";
  const std::string plan = plan_of(1, R"([["forward",900],["forward",1410],["backward",900],["backward",1410]])");
  ScriptedServer server([&](const http::HttpRequest& request) { return well(request, plan); });
  options.server = server.url();
  options.switch_latency_s = 0;  // measured at the start: during training, clock changes overlap
  start();
  ASSERT_TRUE(trains_until([&] { return said.count("clocks come too late") == 1; })) << client->status();
  EXPECT_THAT(client->status(), ::testing::HasSubstr(R"("cause":"late_clocks")"));
}

TEST_F(ClientGpuTest, ASecondClientOfTheSameGpuSetsNoClockAndNamesTheFirst) {
  Said second_said;
  ClientOptions second = options;
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return gpu->locked(); })) << client->status();
  const int holder = helper_pid();
  second.rank = 1;
  second.start_limit_s = 2;  // it waits four fifths for the holder to end
  second.log = second_said.log();
  TrainingClient other(second);
  other.start({});
  ASSERT_TRUE(eventually([&] { return second_said.count("no clock is set") == 1; }));
  EXPECT_EQ(second_said.count("process " + std::to_string(holder)), 1) << other.status();
  perseus_statistics s{};
  other.statistics(s);
  EXPECT_EQ(s.controls_clock, 0);
}

TEST_F(ClientGpuTest, ARankWithoutAGpuOfItsOwnTouchesNone) {
  ::setenv("PERSEUS_SIMULATED_GPUS", (folder_ + "/gpu").c_str(), 1);
  options.device.clear();
  options.rank = 1;
  options.dp_degree = 2;
  start();
  ::unsetenv("PERSEUS_SIMULATED_GPUS");
  EXPECT_EQ(said.count("no energy is measured and no clock is set"), 1);
  EXPECT_EQ(statistics().controls_clock, 0);
}

TEST_F(ClientGpuTest, ARankThatFindsNoGpuLogsWhyOnce) {
  ::setenv("PERSEUS_NVML", (folder_ + "/no_nvml.so").c_str(), 1);
  options.device.clear();
  start();
  ::unsetenv("PERSEUS_NVML");
  iterate();
  EXPECT_EQ(said.count("no energy is measured and no clock is set: "), 1);
  EXPECT_THAT(client->status(), ::testing::HasSubstr(R"("cause":"device")"));
  EXPECT_EQ(statistics().iteration, 1);
  ASSERT_TRUE(trains_until([&] { return client->status().find(R"("work":"forward")") != std::string::npos; }));
  EXPECT_THAT(client->status(), ::testing::Not(::testing::ContainsRegex(R"("clock_mhz":[1-9])")));
}

TEST_F(ClientGpuTest, AModuleAndASliceAreNamedOnce) {
  const device::Environment library("PERSEUS_NVML", NVML_STAND_IN);
  void* const stand_in = ::dlopen(NVML_STAND_IN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(stand_in, nullptr);
  NvmlStandIn& driver = *reinterpret_cast<GetNvmlStandIn>(::dlsym(stand_in, "nvml_stand_in"))();
  driver = {};
  driver.only_module = true;
  driver.slice = true;
  driver.mig_now = 1;
  options.device = "nvml:GPU-slice";  // as PyTorch names it
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  EXPECT_TRUE(eventually([&] {
    return std::ranges::any_of(server.asked("POST", "/v1/jobs"), [](const std::string& body) {
      return body.find(R"("power":"of the module, CPU included")") != std::string::npos;
    });
  }));
  EXPECT_EQ(said.count("power and energy are those of the module, CPU included"), 1);
  EXPECT_EQ(said.count("GPU-card: the GPU is divided (MIG): energies are those of the whole GPU"), 1);
  EXPECT_EQ(statistics().controls_clock, 0);
  client->stop();
  driver = {};
}

TEST_F(ClientGpuTest, ZeusdWithoutANumberIsTheRanksOwnGpu) {
  options.device = "zeusd:";  // the same for every rank of the node
  const device::Environment library("PERSEUS_NVML", PERSEUS_NVML_SIMULATED);
  std::vector<std::unique_ptr<simulated_gpu::SimulatedGpu>> gpus;
  for (const char* name : {"a", "b"}) {
    spec.pci_bus_id = std::string("00000000:0") + name + ":00.0";
    gpus.push_back(std::move(simulated_gpu::SimulatedGpu::create(folder_ + "/" + name, spec).value()));
  }
  const device::Environment files("PERSEUS_SIMULATED_GPUS", folder_ + "/a:" + folder_ + "/b");
  const device::Environment order("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), rank("LOCAL_RANK", "1");
  const device::Environment socket("ZEUSD_SOCK_PATH", folder_ + "/no-zeusd");
  start();
  EXPECT_EQ(said.count(folder_ + "/no-zeusd"), 1);
  const auto wanted = device::open_gpu("nvml:1");
  ASSERT_TRUE(wanted);
  EXPECT_EQ(said.count("zeusd:" + (*wanted)->identity().uuid), 1);
}

TEST_F(ClientGpuTest, ATokenOfZeusdThatExpiresIsReportedAndReadAgain) {
  const device::Environment library("PERSEUS_NVML", PERSEUS_NVML_SIMULATED);
  const device::Environment files("PERSEUS_SIMULATED_GPUS", folder_ + "/gpu");
  const device::Environment socket("ZEUSD_SOCK_PATH", folder_ + "/zeusd");
  const device::Environment token("ZEUSD_TOKEN_FILE", folder_ + "/token");
  const auto write = [this](const char* valid) { std::ofstream(folder_ + "/token") << valid; };
  device::ZeusdStandIn::Habits habits;
  habits.token = "first";
  write("first");
  device::ZeusdStandIn zeusd(folder_ + "/zeusd", {folder_ + "/gpu"}, habits);
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  options.device = "zeusd:";
  options.helper_restart = {0.01, 0.05};
  start();
  ASSERT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  habits.token = "second";
  zeusd.set_habits(habits);
  server.script([](const http::HttpRequest&) { return std::pair(500, std::string("broken")); });
  EXPECT_TRUE(trains_until([&] { return said.count("stays locked until perseus-clockd --restore") > 0; }))
      << client->status();
  EXPECT_TRUE(gpu->locked());
  write("second");
  EXPECT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(1410); })) << client->status();
  server.script([](const http::HttpRequest& request) { return well(request, slow_plan); });
  EXPECT_TRUE(trains_until([&] { return gpu->clock() == Megahertz(900); })) << client->status();
  EXPECT_TRUE(client->stop());
  EXPECT_TRUE(eventually([&] { return !gpu->locked(); }));
}

TEST_F(ClientGpuTest, TheDeviceNoneIsNoComplaint) {
  options.device = "none";
  start();
  EXPECT_EQ(said.count("no energy is measured"), 0);
  EXPECT_THAT(client->status(), ::testing::HasSubstr(R"("wrong":[])"));
}

TEST_F(ClientGpuTest, NoSuchDevice) {
  options.device = "simulated:" + folder_ + "/nothing";
  start();
  EXPECT_EQ(said.count("training runs without"), 1);
  iterate();
  EXPECT_EQ(statistics().iteration, 1);
}

TEST_F(ClientGpuTest, ACounterThatFailsForAWhile) {
  gpu->inject("nvmlDeviceGetTotalEnergyConsumption", 999, -1);
  start();
  ASSERT_TRUE(eventually([&] { return said.count("energy is not measured") == 1; }));
  gpu->inject("nvmlDeviceGetTotalEnergyConsumption", 0, 0);
  ASSERT_TRUE(eventually([&] { return said.count("energy is measured again") == 1; })) << client->status();
  ASSERT_TRUE(trains_until([&] { return statistics().energy_total_j > 0; })) << client->status();
}

TEST_F(ClientGpuTest, ReportsSwitchLatencyAndInstructionsToTheServer) {
  ScriptedServer server([&](const http::HttpRequest& request) { return well(request, window_plan); });
  options.server = server.url();
  start();
  const auto registered_with = [&](const std::string& member) {
    return std::ranges::any_of(server.asked("POST", "/ranks"),
                               [&](const std::string& body) { return body.find(member) != std::string::npos; });
  };
  ASSERT_TRUE(trains_until([&] {
    return registered_with(R"("instructions":["forward","forward","backward","backward"])") &&
           registered_with(R"("switch_latency_s":)");
  })) << client->status();
}

TEST_F(ClientGpuTest, AClockThatAnotherProcessLocksIsSetAgainAndNamed) {
  const std::string plan = plan_of(1, R"([["forward",1410],["forward",1410],["backward",1410],["backward",1410]])");
  ScriptedServer server([&](const http::HttpRequest& request) { return well(request, plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return gpu->locked() && statistics().state == PERSEUS_PLANNED; }));
  const auto other = device::open_simulated(folder_ + "/gpu");
  ASSERT_TRUE((*other)->lock_clock(Megahertz(900)));
  ASSERT_TRUE(trains_until([&] { return said.count("another process changed the GPU's clock to 900 MHz") == 1; }))
      << client->status();
  EXPECT_EQ(gpu->clock(), Megahertz(1410));
  EXPECT_THAT(client->status(), ::testing::HasSubstr(R"("cause":"foreign_clock")"));
  EXPECT_EQ(statistics().controls_clock, 1);
}

TEST_F(ClientGpuTest, AGpuThatIgnoresItsClocksIsNotControlled) {
  spec.switch_latency.assign(3, Seconds(3600));
  gpu = std::move(simulated_gpu::SimulatedGpu::create(folder_ + "/still", spec).value());
  options.device = "simulated:" + folder_ + "/still";
  options.switch_latency_s = 0;  // not measured at the start
  ScriptedServer server([](const http::HttpRequest& request) { return well(request, slow_plan); });
  options.server = server.url();
  start();
  EXPECT_TRUE(trains_until([&] { return said.count("the GPU does not follow") == 1; })) << client->status();
  EXPECT_TRUE(trains_until([&] {
    return std::ranges::any_of(server.asked("POST", "/ranks"), [](const std::string& body) {
      return body.find(R"("control":"none")") != std::string::npos;
    });
  })) << client->status();
}

TEST_F(ClientGpuTest, APowerCapThatComesMakesTheRankAStraggler) {
  const std::string plan = plan_of(1, R"([["forward",1410],["forward",1410],["backward",1410],["backward",1410]])");
  ScriptedServer server([&](const http::HttpRequest& request) { return well(request, plan); });
  options.server = server.url();
  start();
  ASSERT_TRUE(trains_until([&] { return statistics().state == PERSEUS_PLANNED; })) << client->status();
  // It comes after the clock was seen to hold, and iterations are known: again and again, as a busy machine sees less.
  int iterations = 0;
  ASSERT_TRUE(trains_until([&] {
    if (iterations++ % 150 == 0) gpu->set_power_limit(Watts(iterations % 300 < 150 ? 400 : 220));
    return said.count("MHz is set: its power cap") == 1;
  })) << client->status();
  gpu->set_power_limit(Watts(220));
  ASSERT_TRUE(trains_until([&] { return !server.asked("POST", "/stragglers").empty(); })) << client->status();
  EXPECT_THAT(server.asked("POST", "/stragglers").front(), ::testing::HasSubstr(R"("rank":0,"degree":)"));
  gpu->set_power_limit(Watts(400));
  ASSERT_TRUE(trains_until([&] { return server.asked("POST", "/stragglers").back() == R"({"rank":0,"degree":1})"; }))
      << client->status();
  EXPECT_TRUE(trains_until([&] { return said.count("the GPU runs at its clocks again") >= 1; })) << client->status();
}

TEST_F(ClientGpuTest, ThrottledSamplesAreDropped) {
  start();
  ASSERT_TRUE(trains_until([&] { return statistics().samples > 2; }));
  gpu->set_power_limit(Watts(220));
  ASSERT_TRUE(trains_until([&] { return statistics().samples_throttled > 0; })) << client->status();
}

}  // namespace
}  // namespace perseus::client
