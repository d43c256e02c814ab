// The clock controller with its real helper on a simulated GPU.
#include "training/clock_control/clock_controller.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gives_back.h"
#include "lease_folder.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "small_gpu.h"
#include "tests/support/eventually.h"
#include "tests/support/signal_process.h"
#include "training/clock_control/lease.h"
#include "training/clock_control/urgency.h"
#include "training/device/open_gpu.h"
#include "training_process.h"

namespace perseus::clock_control {
namespace {

using testing::eventually;

using ::testing::HasSubstr;

class Controller : public ::testing::Test {
 protected:
  void make_gpu(const simulated_gpu::SimulatedGpuSpec& spec = small_gpu()) {
    auto made = simulated_gpu::SimulatedGpu::create(folder_.file("gpu"), spec);
    ASSERT_TRUE(made) << made.error().message;
    gpu_ = std::move(*made);
  }
  [[nodiscard]] ClockControllerOptions options() const {
    return {"simulated:" + folder_.file("gpu"), PERSEUS_CLOCKD_PROGRAM, 60, restart_};
  }
  void start() {
    auto started = ClockController::start(options());
    ASSERT_TRUE(started) << started.error().message;
    controller_ = std::move(*started);
  }
  [[nodiscard]] std::string error_with(const std::string& helper, double limit_s = 60) const {
    const auto started = ClockController::start({"simulated:" + folder_.file("gpu"), helper, limit_s, {}});
    return started ? "it started" : started.error().message;
  }
  std::string script(const std::string& text) const {
    const std::string path = folder_.file("script");
    std::ofstream(path) << "#!/bin/sh\n" << text << '\n';
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  LeaseFolder folder_;
  RestartLimits restart_;
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  std::unique_ptr<ClockController> controller_;
};

TEST_F(Controller, TheDeviceTakesTheNewestClockAndConfirmsIt) {
  make_gpu();
  start();
  EXPECT_EQ(controller_->state(), ControlState::working);
  EXPECT_EQ(controller_->why(), "");
  controller_->set(Megahertz(700));
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  EXPECT_TRUE(eventually([&] { return controller_->statistics().last_set == Megahertz(700); }));
  for (int i = 0; i < 1000; ++i) controller_->set(Megahertz(i % 2 == 0 ? 350 : 1400));
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(1400); }));
  EXPECT_TRUE(eventually([&] {
    const ControlStatistics now = controller_->statistics();
    return now.requested == now.applied + now.superseded;
  }));
  const ControlStatistics statistics = controller_->statistics();
  EXPECT_EQ(statistics.requested, 1001);
  EXPECT_EQ(statistics.failed, 0);
  EXPECT_GT(statistics.request_to_device_p99_s, 0);
  EXPECT_GE(statistics.request_to_device_p99_s, statistics.request_to_device_p50_s);
  EXPECT_GT(statistics.helper_cpu_s, 0);
}

TEST_F(Controller, StepsThatRepeatAreFollowedToo) {
  make_gpu();
  start();
  for (int step = 0; step < 20; ++step) {
    controller_->begin_step();
    for (const int mhz : {1400, 700, 350}) {
      controller_->set(Megahertz(mhz));
      ASSERT_TRUE(eventually([&] { return controller_->statistics().last_set == Megahertz(mhz); }));
    }
  }
  // A helper counts a clock after it has shown it.
  ASSERT_TRUE(eventually([&] { return !controller_->statistics().pending; }));
  const ControlStatistics statistics = controller_->statistics();
  EXPECT_EQ(statistics.requested, 60);
  EXPECT_EQ(statistics.applied, 60);
}

TEST_F(Controller, ZeroGivesTheClockBackAndSoDoesItsEnd) {
  make_gpu();
  start();
  controller_->set(Megahertz(350));
  EXPECT_TRUE(eventually([&] { return gpu_->locked(); }));
  controller_->set(Megahertz(0));
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); }));
  controller_->set(Megahertz(350));
  EXPECT_TRUE(eventually([&] { return gpu_->locked(); }));
  EXPECT_TRUE(gives_back(controller_, [&] { return !gpu_->locked(); })) << "its destructor waits";
}

TEST_F(Controller, HowLongTheClockTakesIsMeasured) {
  simulated_gpu::SimulatedGpuSpec spec = small_gpu();
  spec.switch_latency = {Seconds(0.02), Seconds(0.02), Seconds(0.02)};
  make_gpu(spec);
  start();
  // An arrival counts only where the helper looks every few milliseconds, which a busy machine may not let it.
  int changes = 0;
  ASSERT_TRUE(eventually([&] {
    controller_->set(Megahertz(changes++ % 2 == 0 ? 350 : 700));
    return eventually([&] { return controller_->statistics().clock_changes_watched > 0; }, std::chrono::seconds(1));
  }));
  EXPECT_GT(controller_->statistics().call_to_clock_p50_s, 0.018);
}

TEST_F(Controller, TwoOfThemDoNotFightOverOneGpu) {
  make_gpu();
  start();
  ClockControllerOptions impatient = options();
  impatient.start_limit_s = 1;
  const auto second = ClockController::start(impatient);
  ASSERT_FALSE(second);
  EXPECT_TRUE(second.error().fault == device::DeviceFault::busy ||
              second.error().fault == device::DeviceFault::no_driver);
  controller_->set(Megahertz(700));
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  controller_.reset();
  start();
}

TEST_F(Controller, AMissingPermissionIsReportedAndNothingStaysLocked) {
  make_gpu();
  gpu_->inject("nvmlDeviceSetGpuLockedClocks", 4, -1);
  start();
  controller_->set(Megahertz(700));
  EXPECT_TRUE(eventually([&] { return controller_->state() == ControlState::refused; }));
  EXPECT_THAT(controller_->why(), HasSubstr("no permission (NVML 4); clocks need root or CAP_SYS_ADMIN: setcap"));
  controller_->set(Megahertz(350));
  EXPECT_FALSE(gpu_->locked());
  EXPECT_EQ(controller_->statistics().applied, 0);
}

TEST_F(Controller, AHelperThatIsKilledIsReplacedAndTheNextBeginsWithTheNewestClock) {
  make_gpu();
  restart_ = {0.001, 0.002};
  start();
  controller_->set(Megahertz(700));
  ASSERT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  for (std::int64_t helper = 1; helper <= 6; ++helper) {
    ASSERT_TRUE(eventually([&] { return controller_->working_helper() == helper; })) << controller_->why();
    const int worker = controller_->helper_pid(), supervisor = controller_->supervisor_pid();
    // Also both at once: then another process restores the clock first.
    if (helper % 3 != 1) testing::signal_process(supervisor, SIGKILL);
    if (helper % 3 != 2) testing::signal_process(worker, SIGKILL);
    const Megahertz next(helper % 2 == 0 ? 700 : 350);
    controller_->set(next);  // the helper may be absent at this moment
    ASSERT_TRUE(eventually([&] { return controller_->working_helper() == helper + 1; })) << controller_->why();
    EXPECT_TRUE(eventually([&] { return gpu_->clock() == next && !controller_->statistics().pending; }));
    EXPECT_NE(controller_->helper_pid(), worker);
    EXPECT_EQ(controller_->why(), "");
  }
  EXPECT_EQ(controller_->statistics().helpers, 7);
  EXPECT_TRUE(gives_back(controller_, [&] { return !gpu_->locked(); }));
}

TEST_F(Controller, WhatAKilledHelperFoundOfTheClockHoldsNoMore) {
  make_gpu();
  restart_ = {0, 0};
  start();
  controller_->set(Megahertz(350));
  ASSERT_TRUE(eventually([&] { return gpu_->locked(); }));
  constexpr int in_use = 19;
  ASSERT_TRUE((*device::open_gpu(options().device))->lock_clock(Megahertz(1400)));
  gpu_->inject("nvmlDeviceSetGpuLockedClocks", in_use, -1);  // the helper cannot set it again
  ASSERT_TRUE(eventually([&] { return controller_->device_clock().other == Megahertz(1400); }));
  const int worker = controller_->helper_pid();
  testing::signal_process(controller_->supervisor_pid(), SIGKILL);
  testing::signal_process(worker, SIGKILL);
  EXPECT_TRUE(eventually([&] { return controller_->device_clock().other == Megahertz(0); }));
}

TEST_F(Controller, OneThatCannotStartIsTriedUntilItCan) {
  restart_ = {0.001, 0.02};
  start();  // this GPU does not exist
  EXPECT_EQ(controller_->state(), ControlState::gone);
  EXPECT_THAT(controller_->why(), HasSubstr(folder_.file("gpu")));
  controller_->set(Megahertz(700));
  make_gpu();
  ASSERT_TRUE(eventually([&] { return controller_->working_helper() == 1; })) << controller_->why();
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
}

TEST_F(Controller, PermissionThatIsGrantedLateIsUsed) {
  make_gpu();
  restart_ = {0.001, 0.02};
  gpu_->inject("nvmlDeviceSetGpuLockedClocks", 4, -1);
  start();
  controller_->set(Megahertz(700));
  ASSERT_TRUE(eventually([&] { return controller_->statistics().helpers > 3; }));
  EXPECT_LE(controller_->statistics().failed, 1) << "it is one request";
  EXPECT_FALSE(gpu_->locked());
  gpu_->inject("nvmlDeviceSetGpuLockedClocks", 0, 0);
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); })) << controller_->why();
  EXPECT_TRUE(eventually([&] { return controller_->statistics().last_set == Megahertz(700); }));
}

TEST_F(Controller, AGpuHeldByAnotherProcessIsTriedUntilItIsFree) {
  make_gpu();
  start();
  ClockControllerOptions waits_longer = options();
  waits_longer.restart = {0.001, 0.02};
  waits_longer.start_limit_s = 3;  // on a busy machine a helper takes a second to get ready
  const auto second = ClockController::start(waits_longer);
  ASSERT_TRUE(second);
  (*second)->set(Megahertz(350));
  EXPECT_EQ((*second)->state(), ControlState::gone);
  controller_->set(Megahertz(700));
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  controller_.reset();
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(350); })) << (*second)->why();
}

TEST_F(Controller, ItEndsAtOnceWhileItWaitsToTryAgainAndWhileItTries) {
  make_gpu();
  restart_ = {3600, 3600};
  start();
  testing::signal_process(controller_->helper_pid(), SIGKILL);
  ASSERT_TRUE(eventually([&] { return controller_->state() == ControlState::gone; }));
  controller_.reset();
  ClockControllerOptions hangs = options();
  hangs.helper = script("[ -e " + folder_.file("tried") + " ] && touch " + folder_.file("again") +
                        " && exec sleep 60 > /dev/null 2>&1\n" + "touch " + folder_.file("tried"));
  hangs.start_limit_s = 3600;
  hangs.restart = {0.001, 0.001};
  auto second = ClockController::start(hangs);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_THAT((*second)->why(), HasSubstr("ended without an answer"));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder_.file("again")); }));
  second->reset();
}

TEST_F(Controller, AHelperThatDoesNotEndHasNoSuccessor) {
  make_gpu();
  const std::string tries = folder_.file("tries"), process = folder_.file("process");
  // The fault leaves behind a process with our file descriptors, like a process that hangs in the driver.
  ClockControllerOptions hangs = options();
  hangs.helper = script("sleep 60 > /dev/null 2>&1 &\necho $! >> " + process + "\necho >> " + tries);
  hangs.start_limit_s = 1;
  hangs.restart = {0.0001, 60};  // two restarts at once, then a pause
  const auto last_process = [&] {
    int last = 0;
    std::ifstream numbers(process);
    for (int number = 0; numbers >> number;) last = number;
    return last;
  };
  {
    const auto controller = ClockController::start(hangs);
    ASSERT_TRUE(controller) << controller.error().message;
    for (int i = 0; i < 20; ++i)
      EXPECT_THAT(error_with("/bin/true"), HasSubstr("ended without an answer"));  // allows more time
    EXPECT_EQ(LeaseFolder::text_of(tries), "\n");
    testing::signal_process(last_process(), SIGKILL);
    EXPECT_TRUE(eventually([&] { return LeaseFolder::text_of(tries) == "\n\n"; }));
  }
  testing::signal_process(last_process(), SIGKILL);
}

TEST_F(Controller, ReportsALostGpu) {
  make_gpu();
  start();
  gpu_->inject("nvmlDeviceSetGpuLockedClocks", 15, -1);
  controller_->set(Megahertz(700));
  EXPECT_TRUE(eventually([&] { return controller_->state() == ControlState::gone; }));
  EXPECT_THAT(controller_->why(), HasSubstr("lost"));
}

TEST_F(Controller, BusyPasses) {
  make_gpu();
  start();
  gpu_->inject("nvmlDeviceSetGpuLockedClocks", 999, 3);
  controller_->set(Megahertz(700));
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  EXPECT_EQ(controller_->statistics().failed, 0);
}

TEST_F(Controller, AGpuThatIsNotThereIsTheHelpersError) {
  const auto started = ClockController::start(options());
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().fault, device::DeviceFault::lost);
  EXPECT_THAT(started.error().message, HasSubstr(folder_.file("gpu")));
}

TEST_F(Controller, HelpersThatAreNoneAreRefused) {
  make_gpu();
  EXPECT_THAT(error_with(folder_.file("none")), HasSubstr(folder_.file("none") + " is not a program"));
  EXPECT_THAT(error_with(folder_.path()), HasSubstr("is not a program"));
  EXPECT_THAT(error_with(folder_.file("gpu")), HasSubstr("is not a program"));
  EXPECT_THAT(error_with("/bin/true"), HasSubstr("ended without an answer"));
  EXPECT_THAT(error_with(script("kill -9 $$")), HasSubstr("ended without an answer"));
  EXPECT_THAT(error_with(script("exec sleep 1000"), 0.3), HasSubstr("did not get ready in 0.3 s"));
  std::ofstream(folder_.file("script")) << "no program at all";
  EXPECT_THAT(error_with(folder_.file("script")), HasSubstr("cannot run"));
  EXPECT_FALSE(gpu_->locked());
}

TEST_F(Controller, ALateHelperLearnsTheHolderOfTheClock) {
  make_gpu();
  ClockControllerOptions late = options();
  late.helper = script("exec sleep 1000");
  late.start_limit_s = 0.3;
  late.restart = {};
  const auto opened = device::open_gpu(late.device);
  ASSERT_TRUE(opened);
  late.gpu = (*opened)->identity();
  const auto why = [&] {
    const auto started = ClockController::start(late);
    return started ? "it started" : started.error().message;
  };
  start();
  EXPECT_EQ(why(), late.helper + " did not get ready in 0.3 s") << "holds the lease, and has locked nothing";
  controller_->set(Megahertz(350));
  ASSERT_TRUE(eventually([&] { return gpu_->locked(); }));
  EXPECT_THAT(why(), HasSubstr("another perseus-clockd's, process " + std::to_string(controller_->helper_pid())));
  EXPECT_THAT(why(), HasSubstr(late.helper + " did not get ready in 0.3 s"));
  ASSERT_TRUE(gives_back(controller_, [&] { return !gpu_->locked(); }));
  EXPECT_EQ(why(), late.helper + " did not get ready in 0.3 s") << "no process holds it now";
}

TEST_F(Controller, AHelperThatStartsSlowlyIsWaitedFor) {
  make_gpu();
  ClockControllerOptions late = options();
  late.helper =
      script("while [ ! -e " + folder_.file("go") + " ]; do sleep 0.01; done\nexec " + late.helper + " \"$@\"");
  late.start_limit_s = 0.1;
  late.restart = {3600, 3600};
  auto started = ClockController::start(late);
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ((*started)->state(), ControlState::gone);
  EXPECT_EQ((*started)->why(), late.helper + " did not get ready in 0.1 s");
  (*started)->set_budget(Megahertz(700), 0);
  std::ofstream(folder_.file("go")) << "";
  ASSERT_TRUE(eventually([&] { return (*started)->working_helper() == 1; })) << (*started)->why();
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); })) << "the ceiling that was set meanwhile";
}

TEST_F(Controller, AHelperOfAnotherVersionIsRefused) {
  make_gpu();
  // A HelperHello of version 9.9.9: magic, fault, two ids, 32 bytes of version, 1024 of text.
  const std::string hello = R"(printf 'HLCP\377\377\377\377\1\0\0\0\1\0\0\0%s%s' 9.9.9 "" > hello)";
  EXPECT_THAT(error_with(script("cd " + folder_.path() + "\n" + hello +
                                "\ntruncate -s 1072 hello\ndd if=hello bs=1072 count=1 >&4 2>/dev/null")),
              HasSubstr("is version 9.9.9, this is "));
}

TEST_F(Controller, TheHelperKeepsNoFileOfOurs) {
  make_gpu();
  int leaked[2];
  ASSERT_EQ(::pipe(leaked), 0);  // without close-on-exec
  ASSERT_EQ(::fcntl(leaked[0], F_SETFL, O_NONBLOCK), 0);
  const int high = ::fcntl(leaked[1], F_DUPFD, 100);
  start();
  ::close(leaked[1]);
  ::close(high);
  char byte = 0;
  EXPECT_EQ(::read(leaked[0], &byte, 1), 0) << "another process has the other end";  // else -1, EAGAIN
  ::close(leaked[0]);
}

TEST_F(Controller, ItIsAProcessGroupOfItsOwnInTrainingsSessionAndSparesTheTerminalsSignals) {
  make_gpu();
  start();
  for (const int pid : {controller_->helper_pid(), controller_->supervisor_pid()}) {
    EXPECT_NE(::getpgid(pid), ::getpgid(0));
    EXPECT_EQ(::getsid(pid), ::getsid(0)) << "the kernel may starve other sessions (urgency.h)";
    const bool real_time = obtainable_urgency() == Urgency::real_time;
    const auto policy = [pid] { return ::sched_getscheduler(pid) & ~SCHED_RESET_ON_FORK; };
    EXPECT_TRUE(eventually([&] { return policy() == (real_time ? SCHED_FIFO : SCHED_OTHER); })) << policy();
    for (const int signal : {SIGINT, SIGHUP, SIGQUIT}) testing::signal_process(pid, signal);
  }
  controller_->set(Megahertz(700));
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  EXPECT_EQ(controller_->state(), ControlState::working);
}

TEST_F(Controller, SigtermToEitherProcessGivesTheClockBack) {
  make_gpu();
  for (const bool supervisor : {true, false}) {
    start();
    controller_->set(Megahertz(700));
    ASSERT_TRUE(eventually([&] { return gpu_->locked(); }));
    testing::signal_process(supervisor ? controller_->supervisor_pid() : controller_->helper_pid(), SIGTERM);
    EXPECT_TRUE(eventually([&] { return controller_->state() == ControlState::gone; }));
    EXPECT_FALSE(gpu_->locked());
    EXPECT_THAT(controller_->why(), HasSubstr("perseus-clockd has ended"));
    controller_->set(Megahertz(350));
    EXPECT_TRUE(gives_back(controller_, [&] { return !gpu_->locked(); }));
  }
}

TEST_F(Controller, AHungWorkerIsReplacedInItsDuty) {
  make_gpu();
  start();
  controller_->set(Megahertz(700));
  ASSERT_TRUE(eventually([&] { return gpu_->locked(); }));
  testing::signal_process(controller_->helper_pid(), SIGSTOP);  // simulates a hang in the driver
  controller_.reset();
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); }));
}

TEST_F(Controller, AWorkerThatHangsIsFoundByItsUnansweredRequests) {
  make_gpu();
  restart_ = {0.001, 0.002};
  start();
  controller_->set(Megahertz(700));
  ASSERT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  testing::signal_process(controller_->helper_pid(), SIGSTOP);
  controller_->set(Megahertz(350));
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(350); })) << controller_->why();
  EXPECT_TRUE(eventually([&] { return controller_->working_helper() == 2; }));
}

TEST_F(Controller, AWorkerThatHangsIsFoundThoughItHadNothingToDoBefore) {
  make_gpu();
  start();
  testing::signal_process(controller_->helper_pid(), SIGSTOP);
  controller_->set(Megahertz(350));
  EXPECT_TRUE(eventually([&] { return controller_->state() == ControlState::gone; }));
  EXPECT_TRUE(eventually([&] { return controller_->why() != ""; }));
  EXPECT_THAT(controller_->why(), HasSubstr("did not answer for 200 ms"));
  EXPECT_FALSE(gpu_->locked());
}

TEST_F(Controller, ASuspendedTrainingProcessGivesItsClockBackAndTakesItAgain) {
  make_gpu();
  restart_ = {0.01, 0.02};
  expect_clock_follows_suspension(start_training_process(options()), *gpu_);
}

TEST_F(Controller, AnAdministratorsCeilingIsNotExceededAndComesBack) {
  make_gpu();
  ClockControllerOptions limited = options();
  limited.ceiling = Megahertz(700);
  auto started = ClockController::start(limited);
  ASSERT_TRUE(started) << started.error().message;
  (*started)->set(Megahertz(1400));
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  (*started)->set(Megahertz(350));
  ASSERT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(350); }));
  EXPECT_TRUE(gives_back(*started, [&] { return gpu_->clock() == Megahertz(700); }));
}

TEST_F(Controller, AForkedChildDoesNothing) {
  make_gpu();
  start();
  controller_->set(Megahertz(700));
  ASSERT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  const pid_t child = ::fork();
  if (child == 0) {
    controller_->set(Megahertz(350));
    const bool silent = controller_->state() == ControlState::gone;
    controller_.reset();
    ::_exit(silent ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(controller_->statistics().requested, 1);
  EXPECT_EQ(controller_->state(), ControlState::working);
  controller_->set(Megahertz(350));
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(350); }));
}

TEST_F(Controller, TheHelperIsNotAChildOfTheProcess) {
  make_gpu();
  start();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a program that waits for all its children would wait for ever";
}

/// The names of a process's children, "(defunct)" for one that has ended and was not waited for.
std::vector<std::string> children_of(pid_t parent) {
  std::istringstream pids(
      LeaseFolder::text_of("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children"));
  std::vector<std::string> names;
  for (std::string pid; pids >> pid;) {
    const std::string stat = LeaseFolder::text_of("/proc/" + pid + "/stat");
    names.push_back(stat.find(") Z ") == std::string::npos ? LeaseFolder::text_of("/proc/" + pid + "/comm")
                                                           : "(defunct)");
  }
  return names;
}

TEST_F(Controller, TheProcessThatRestoresOtherLeasesLeavesNoDefunctOne) {
  make_gpu();
  start();
  ASSERT_GT(controller_->supervisor_pid(), 0);
  EXPECT_TRUE(eventually([&] {
    return children_of(controller_->supervisor_pid()) == std::vector<std::string>{"clockd-worker\n"};
  })) << ::testing::PrintToString(children_of(controller_->supervisor_pid()));
}

TEST_F(Controller, RunByHandItPrintsItsPurpose) {
  const std::string program = PERSEUS_CLOCKD_PROGRAM;
  const auto status_of = [&](const std::string& arguments) {
    return WEXITSTATUS(std::system((program + " " + arguments + " > " + folder_.file("out") + " 2>&1").c_str()));
  };
  EXPECT_EQ(status_of(""), 64);
  EXPECT_THAT(LeaseFolder::text_of(folder_.file("out")), HasSubstr("no command"));
  EXPECT_EQ(status_of("--device simulated:nothing"), 64);
  EXPECT_THAT(LeaseFolder::text_of(folder_.file("out")), HasSubstr("no mailbox"));
  EXPECT_EQ(status_of("--nonsense"), 64);
  EXPECT_EQ(status_of("--help"), 0);
  EXPECT_THAT(LeaseFolder::text_of(folder_.file("out")), HasSubstr("usage:"));
  EXPECT_EQ(status_of("--version"), 0);
  EXPECT_EQ(status_of("--restore"), 0);
  EXPECT_EQ(status_of("--restore " + folder_.file("none")), 69);
}

TEST_F(Controller, WithMoreRightsThanItsCallerItTakesNothingFromTheEnvironment) {
#ifdef PERSEUS_ADDRESS_SANITIZER
  GTEST_SKIP() << "the leak checker cannot look into a program with rights of its own";
#endif
  struct statvfs about {};
  if (::geteuid() != 0 || ::statvfs(folder_.path().c_str(), &about) != 0 || (about.f_flag & ST_NOSUID) != 0) {
    GTEST_SKIP() << "needs root and a folder where programs can have rights of their own";
  }
  make_gpu();
  {
    auto device = device::open_gpu("simulated:" + folder_.file("gpu"));
    ASSERT_TRUE(device);
    auto lease = Lease::take((*device)->identity(), "simulated:" + folder_.file("gpu"), 0);
    ASSERT_TRUE(lease && lease->record() && (*device)->lock_clock(Megahertz(350)));
  }
  const std::string program = folder_.file("perseus-clockd");
  std::filesystem::copy_file(PERSEUS_CLOCKD_PROGRAM, program);
  ASSERT_EQ(::chown(program.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chown(folder_.path().c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  // Simulates a program with setcap: it does not have the rights of root here, but the kernel reports rights that
  // differ from its caller's.
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  EXPECT_EQ(std::system((program + " --restore > " + folder_.file("out")).c_str()), 0);
  EXPECT_EQ(LeaseFolder::text_of(folder_.file("out")), "") << "it looked into $PERSEUS_RUNTIME_DIR";
  EXPECT_TRUE(gpu_->locked());
}

}  // namespace
}  // namespace perseus::clock_control
