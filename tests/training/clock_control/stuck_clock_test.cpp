// A clock that cannot be given back: which process tries, what is said of it, and that --restore frees it later.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "lease_folder.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "small_gpu.h"
#include "tests/support/eventually.h"
#include "tests/support/signal_process.h"
#include "training/clock_control/clock_controller.h"
#include "training/device/open_gpu.h"

namespace perseus::clock_control {
namespace {

using testing::eventually;

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kReset = "nvmlDeviceResetGpuLockedClocks";

class StuckClock : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = simulated_gpu::SimulatedGpu::create(folder_.file("gpu"), small_gpu());
    ASSERT_TRUE(made) << made.error().message;
    gpu_ = std::move(*made);
    ::setenv("PERSEUS_NVML", PERSEUS_SIMULATED_NVML, 1);
    ::setenv("PERSEUS_SIMULATED_GPUS", folder_.file("gpu").c_str(), 1);
    auto opened = device::open_gpu("nvml:0");
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = std::move(*opened);  // as a training process has it, for energies
  }
  void TearDown() override {
    controller_.reset();
    device_.reset();
    ::unsetenv("PERSEUS_NVML");
    ::unsetenv("PERSEUS_SIMULATED_GPUS");
  }
  [[nodiscard]] ClockControllerOptions options(RestartLimits restart = {}) const {
    ClockControllerOptions options{"nvml:0", PERSEUS_CLOCKD_PROGRAM, 60, restart};
    options.gpu = device_->identity();
    return options;
  }
  void start(RestartLimits restart = {}) {
    auto started = ClockController::start(options(restart));
    ASSERT_TRUE(started) << started.error().message;
    controller_ = std::move(*started);
  }
  void lock() {
    controller_->set(Megahertz(350));
    ASSERT_TRUE(eventually([&] { return controller_->statistics().last_set == Megahertz(350); }));
  }
  /// $? of `perseus-clockd --restore`.
  static int restore() {
    return WEXITSTATUS(std::system((std::string(PERSEUS_CLOCKD_PROGRAM) + " --restore > /dev/null 2>&1").c_str()));
  }
  [[nodiscard]] auto says_what_to_do() const {
    return AllOf(HasSubstr(device_->identity().uuid), HasSubstr("350 MHz"), HasSubstr("perseus-clockd --restore"),
                 HasSubstr(folder_.path()));
  }

  LeaseFolder folder_;
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  std::unique_ptr<device::Gpu> device_;
  std::unique_ptr<ClockController> controller_;
};

TEST_F(StuckClock, AHelperThatStartsWhileItsGpuIsLostNamesItByTheUuidOfItsParent) {
  gpu_->inject("nvmlDeviceGetUUID", 15, -1);
  gpu_->inject("nvmlDeviceGetPciInfo_v3", 15, -1);
  start();
  lock();
  ASSERT_TRUE(gpu_->locked());
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (!entry.path().filename().string().starts_with("clock-lease-")) continue;
    EXPECT_EQ(entry.path().filename(), "clock-lease-" + device_->identity().uuid);
  }
  controller_.reset();
  EXPECT_FALSE(gpu_->locked());
}

TEST_F(StuckClock, AnOrderlyEndSaysWhatGivesItBack) {
  for (const int code : {4, 15, 16, 999}) {
    start();
    EXPECT_EQ(controller_->left_locked(), "");
    lock();
    gpu_->inject(kReset, code, -1);
    controller_->stop();
    EXPECT_THAT(controller_->left_locked(), says_what_to_do()) << code;
    controller_.reset();
    // The supervisor may still try.
    EXPECT_TRUE(eventually([] { return restore() == 69; })) << code;
    EXPECT_TRUE(gpu_->locked());
    gpu_->inject(kReset, 0, 0);
    EXPECT_EQ(restore(), 0) << code;
    EXPECT_FALSE(gpu_->locked()) << code;
  }
}

TEST_F(StuckClock, AResetThatFailsSomeTimesLeavesNothing) {
  for (const int code : {4, 15, 16, 999}) {
    start();
    lock();
    gpu_->inject(kReset, code, 3);
    controller_.reset();
    EXPECT_FALSE(gpu_->locked()) << code;
    gpu_->inject(kReset, 0, 0);
  }
}

TEST_F(StuckClock, AHelperThatIsRefusedHasTimeToGiveBack) {
  start();
  lock();
  gpu_->inject("nvmlDeviceSetGpuLockedClocks", 4, -1);
  gpu_->inject(kReset, 999, 9);  // it tries for longer than the watchdog waits for an answer
  controller_->set(Megahertz(700));
  EXPECT_TRUE(eventually([&] { return controller_->state() != ControlState::working; }));
  EXPECT_EQ(controller_->state(), ControlState::refused);
  EXPECT_THAT(controller_->why(), HasSubstr("no permission"));
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); }));
  EXPECT_EQ(controller_->left_locked(), "");
}

TEST_F(StuckClock, WhileTrainingGoesOnItIsSaidUntilASuccessorGivesItBack) {
  start({0.001, 0.001});
  lock();
  gpu_->inject(kReset, 15, -1);
  testing::signal_process(controller_->helper_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return controller_->left_locked() != ""; }));
  EXPECT_THAT(controller_->left_locked(), HasSubstr("perseus-clockd --restore"));
  gpu_->inject(kReset, 0, 0);
  EXPECT_TRUE(eventually([&] { return controller_->working_helper() > 1; }));
  EXPECT_EQ(controller_->left_locked(), "");
}

/// The driver's library was replaced: processes that have a session keep it, new ones get "other versions".
TEST_F(StuckClock, WhereNewProcessesAreRefusedTheOneWithASessionGivesItBack) {
  start({0.001, 0.001});
  lock();
  gpu_->inject("nvmlInit_v2", 18, -1);
  testing::signal_process(controller_->helper_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); }));
  EXPECT_TRUE(eventually([&] { return controller_->why().find("NVML 18") != std::string::npos; }));
  EXPECT_THAT(controller_->why(), HasSubstr("until the driver is loaded again or the machine boots"));
  EXPECT_EQ(controller_->left_locked(), "");
}

/// exit() without stop().
TEST_F(StuckClock, AnExitSaysItOnStandardError) {
  const pid_t training = ::fork();
  if (training == 0) {
    (void)std::freopen(folder_.file("err").c_str(), "w", stderr);
    auto started = ClockController::start(options({3600, 3600}));
    if (!started) ::_exit(1);
    static ClockController* const controller = started->release();  // as a program that never stops it
    controller->set(Megahertz(350));
    if (!eventually([&] { return gpu_->locked(); })) ::_exit(1);
    gpu_->inject(kReset, 15, -1);
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(training, &status, 0), training);
  EXPECT_EQ(WEXITSTATUS(status), 0) << LeaseFolder::text_of(folder_.file("err"));
  EXPECT_THAT(LeaseFolder::text_of(folder_.file("err")),
              AllOf(HasSubstr("perseus: the clock of " + device_->identity().uuid + " may be stuck at 350 MHz"),
                    HasSubstr("perseus-clockd --restore")));
  gpu_->inject(kReset, 0, 0);
  EXPECT_TRUE(eventually([] { return restore() == 0; }));
  EXPECT_FALSE(gpu_->locked());
}

}  // namespace
}  // namespace perseus::clock_control
