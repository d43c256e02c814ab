// The GPU's own power limit under a power budget: its watts, its restoration after every kind of end, the limits of
// others.
#include "training/clock_control/power_backstop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "daemon_process.h"
#include "fake_gpu.h"
#include "gives_back.h"
#include "lease_folder.h"
#include "simulation/simulated_gpu/simulated_driver.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "small_gpu.h"
#include "tests/support/eventually.h"
#include "training/clock_control/clock_controller.h"
#include "training/clock_control/clock_worker.h"

namespace perseus::clock_control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kBackstopSecond = 1'000'000'000, kWholeTest = 3600 * kBackstopSecond;

/// Takes limits from 100 to 700 W and begins with 650 W.
class PowerGpu : public FakeGpu {
 public:
  device::DeviceResult<device::GpuConditions> conditions() override {
    device::GpuConditions conditions;
    conditions.mig = mig;
    return conditions;
  }
  device::DeviceResult<device::PowerLimits> power_limits() override {
    return device::PowerLimits{limit, Watts(100), Watts(700)};
  }
  device::DeviceStatus set_power_limit(Watts watts) override {
    limits.push_back(watts.value());
    if (fault) return device::DeviceError{*fault, "no limit for you"};
    limit = watts;
    return Ok{};
  }
  Watts limit{650};
  bool mig = false;
  std::optional<device::DeviceFault> fault;
  std::vector<double> limits;  ///< of all calls
};

class Backstop : public ::testing::Test {
 protected:
  void SetUp() override {
    lease_.emplace(Lease::take(gpu_.identity(), "fake:0", 0).value());
    backstop_.emplace(mailbox_, gpu_, *lease_, true);
    mailbox_.limit.set(Megahertz(700), kWholeTest);
  }
  /// One look of the worker after the request.
  void request(double watts) {
    mailbox_.limit.limit_power(Watts(watts));
    backstop_->work(now_ns_);
  }
  void wait(double s) {
    now_ns_ += static_cast<std::int64_t>(s * 1e9);
    backstop_->work(now_ns_);
  }
  [[nodiscard]] std::string record() const { return LeaseFolder::text_of(lease_->path()); }
  [[nodiscard]] std::string why() const { return mailbox_.why_no_backstop.read(); }

  LeaseFolder folder_;
  PowerGpu gpu_;
  Mailbox mailbox_;
  std::optional<Lease> lease_;
  std::optional<PowerBackstop> backstop_;
  std::int64_t now_ns_ = 5 * kBackstopSecond;
};

TEST_F(Backstop, LowersTheLimitOnceAndRestoresIt) {
  backstop_->work(now_ns_);
  EXPECT_THAT(gpu_.limits, IsEmpty());
  request(400);
  request(400);
  EXPECT_THAT(gpu_.limits, ElementsAre(400));
  EXPECT_EQ(mailbox_.backstop, BackstopState::set);
  EXPECT_EQ(mailbox_.backstop_mw, 400'000);
  EXPECT_THAT(record(), HasSubstr("\npower 0000650000 0000400000 0000400000\n"));
  request(450);
  EXPECT_THAT(record(), HasSubstr("\npower 0000650000 0000450000 0000450000\n")) << "the first limit is restored";
  request(0);
  EXPECT_THAT(gpu_.limits, ElementsAre(400, 450, 650));
  EXPECT_EQ(mailbox_.backstop, BackstopState::none);
  EXPECT_THAT(record(), ::testing::Not(HasSubstr("power")));
}

TEST_F(Backstop, TheEndOfTheBudgetRestoresIt) {
  request(400);
  mailbox_.limit.set(Megahertz(0), 0);
  backstop_->work(now_ns_);
  EXPECT_EQ(gpu_.limit, Watts(650));
}

TEST_F(Backstop, StaysWithinTheDevicesRangeAndBelowTheLimitThatWasThere) {
  request(30);
  EXPECT_EQ(gpu_.limit, Watts(100));
  request(680);
  EXPECT_EQ(gpu_.limit, Watts(650)) << "what it had";
  EXPECT_EQ(mailbox_.backstop, BackstopState::needless);
  EXPECT_FALSE(lease_->power_limit().any());
  request(650);
  EXPECT_THAT(gpu_.limits, ElementsAre(100, 650)) << "that is its limit already";
}

TEST_F(Backstop, AnotherProcessesLimitStays) {
  request(400);
  gpu_.limit = Watts(300);
  wait(5);
  EXPECT_EQ(mailbox_.backstop, BackstopState::set) << "it reads every 10 s";
  wait(5);
  EXPECT_EQ(mailbox_.backstop, BackstopState::refused);
  EXPECT_EQ(mailbox_.backstop_mw, 0);
  EXPECT_EQ(why(), "another process has set the GPU's power limit to 300 W, which stays");
  request(500);
  request(0);
  EXPECT_TRUE(give_back_patiently(gpu_, *lease_));
  EXPECT_EQ(gpu_.limit, Watts(300));
  EXPECT_THAT(gpu_.limits, ElementsAre(400));
}

TEST_F(Backstop, AnotherProcessesLimitStaysIfItIsSeenOnlyAtTheEnd) {
  request(400);
  gpu_.limit = Watts(700);
  EXPECT_TRUE(give_back_patiently(gpu_, *lease_));
  EXPECT_EQ(gpu_.limit, Watts(700));
  EXPECT_FALSE(lease_->recorded());
}

TEST_F(Backstop, ARefusalIsReportedOnceAndChangesNothing) {
  gpu_.fault = device::DeviceFault::no_permission;
  request(400);
  EXPECT_EQ(mailbox_.backstop, BackstopState::refused);
  EXPECT_EQ(why(), "no limit for you");
  EXPECT_FALSE(lease_->power_limit().any());
  gpu_.fault.reset();
  request(300);
  wait(100);
  EXPECT_THAT(gpu_.limits, ElementsAre(400));
  EXPECT_EQ(backstop_->due_ns(), PowerBackstop::kNever);
}

TEST_F(Backstop, ABusyDeviceIsTriedAgain) {
  gpu_.fault = device::DeviceFault::busy;
  request(400);
  EXPECT_TRUE(lease_->power_limit().any()) << "it may have been set";
  gpu_.fault.reset();
  wait(1);
  EXPECT_EQ(gpu_.limit, Watts(400));
  EXPECT_EQ(mailbox_.backstop, BackstopState::set);
}

TEST_F(Backstop, ADividedGpuKeepsItsLimit) {
  gpu_.mig = true;
  request(400);
  EXPECT_EQ(mailbox_.backstop, BackstopState::refused);
  EXPECT_THAT(why(), HasSubstr("MIG"));
  EXPECT_THAT(gpu_.limits, IsEmpty());
}

TEST_F(Backstop, WithoutTheOptionThereIsNone) {
  PowerBackstop forbidden(mailbox_, gpu_, *lease_, false);
  mailbox_.limit.limit_power(Watts(400));
  forbidden.work(now_ns_);
  EXPECT_EQ(why(), "perseus-clockd sets no power limit without its option --power-limit");
  EXPECT_THAT(gpu_.limits, IsEmpty());
}

TEST_F(Backstop, TheNextHelperContinuesWithTheLimitThatWasThere) {
  request(400);
  const std::string path = lease_->path();
  lease_.reset();
  lease_.emplace(Lease::take(gpu_.identity(), "fake:0", 0).value());
  EXPECT_EQ(lease_->power_limit().was, Watts(650));
  ClockWorker next(
      mailbox_, gpu_, *lease_, [this] { return now_ns_; }, true);
  ASSERT_TRUE(next.begin());
  (void)next.work();
  EXPECT_THAT(gpu_.limits, ElementsAre(400));
  EXPECT_TRUE(next.give_back());
  EXPECT_EQ(gpu_.limit, Watts(650));
}

TEST_F(Backstop, TheRecordStaysAfterAnUnlockUntilTheLimitIsRestored) {
  ClockWorker worker(
      mailbox_, gpu_, *lease_, [this] { return now_ns_; }, true);
  ASSERT_TRUE(worker.begin());
  mailbox_.limit.limit_power(Watts(400));
  (void)worker.work();
  ASSERT_EQ(gpu_.locked_mhz, 700);
  ASSERT_EQ(gpu_.limit, Watts(400));
  gpu_.fault = device::DeviceFault::busy;
  mailbox_.limit.set(Megahertz(0), 0);
  (void)worker.work();
  EXPECT_EQ(gpu_.locked_mhz, 0);
  EXPECT_EQ(gpu_.limit, Watts(400));
  EXPECT_EQ(mailbox_.locked, 1U);
  EXPECT_TRUE(lease_->recorded());
  gpu_.fault.reset();
  now_ns_ += 20 * kBackstopSecond;
  (void)worker.work();
  EXPECT_EQ(gpu_.limit, Watts(650));
  EXPECT_EQ(mailbox_.locked, 0U);
  EXPECT_FALSE(lease_->recorded());
}

/// A worker whose training process makes no call any more.
class FallenBackstop : public Backstop {
 protected:
  void SetUp() override {
    Backstop::SetUp();
    worker_.emplace(
        mailbox_, gpu_, *lease_, [this] { return now_ns_; }, true);
    ASSERT_TRUE(worker_->begin());
    mailbox_.limit.limit_power(Watts(400));
    mailbox_.limit.falls(std::vector<CeilingFall>{{at(5), Megahertz(700), Watts(300)},
                                                  {at(8), Megahertz(350), Watts(350)},
                                                  {at(9), Megahertz(350), Watts(220.5)}});
    (void)worker_->work();
  }
  [[nodiscard]] std::int64_t at(int s) const { return (5 + s) * kBackstopSecond; }
  /// Works when the worker wants to, until then.
  void sleep_until(std::int64_t until_ns) {
    while (now_ns_ < until_ns) {
      const std::int64_t due_ns = worker_->work();
      now_ns_ = due_ns < 0 ? until_ns : std::min(now_ns_ + std::max<std::int64_t>(due_ns, 1000), until_ns);
    }
    (void)worker_->work();
  }

  std::optional<ClockWorker> worker_;
};

TEST_F(FallenBackstop, FallsByItselfAndNeverRises) {
  sleep_until(at(5) - kBackstopSecond / 100);
  EXPECT_THAT(gpu_.limits, ElementsAre(400));
  sleep_until(at(5));
  EXPECT_THAT(gpu_.limits, ElementsAre(400, 300));
  sleep_until(at(60));
  EXPECT_THAT(gpu_.limits, ElementsAre(400, 300, 220.5));
  EXPECT_EQ(gpu_.locked_mhz, 350);
  EXPECT_THAT(record(), HasSubstr("\npower 0000650000 0000220500 0000220500\n"));
  EXPECT_TRUE(worker_->give_back());
  EXPECT_EQ(gpu_.limit, Watts(650));
}

TEST_F(FallenBackstop, ANewPlanRaisesItAgain) {
  sleep_until(at(9));
  mailbox_.limit.falls({});
  mailbox_.limit.limit_power(Watts(450));
  (void)worker_->work();
  EXPECT_EQ(gpu_.limit, Watts(450));
  mailbox_.limit.falls(std::vector<CeilingFall>{{now_ns_, Megahertz(700), Watts(300)}});
  (void)worker_->work();
  EXPECT_EQ(gpu_.limit, Watts(300));
  mailbox_.limit.set(Megahertz(0), 0);
  (void)worker_->work();
  EXPECT_EQ(gpu_.limit, Watts(650)) << "no budget any more";
}

TEST_F(FallenBackstop, TheNextHelperFindsTheFallsThatCameWithoutOne) {
  worker_.reset();
  now_ns_ = at(6);
  worker_.emplace(
      mailbox_, gpu_, *lease_, [this] { return now_ns_; }, true);
  ASSERT_TRUE(worker_->begin());
  (void)worker_->work();
  EXPECT_THAT(gpu_.limits, ElementsAre(400, 300));
}

// ---- Real processes.

class RealBackstop : public ::testing::Test {
 protected:
  void SetUp() override {
    simulated_gpu::SimulatedGpuSpec spec = small_gpu();
    spec.computations[0].time = {Seconds(3600), Seconds(7200), Seconds(14400)};  // it lasts longer than a test
    gpu_ = std::move(simulated_gpu::SimulatedGpu::create(folder_.file("gpu"), spec).value());
    driver_ = std::move(simulated_gpu::SimulatedDriver::attach(folder_.file("gpu")).value());
    options_ = {"simulated:" + folder_.file("gpu"), PERSEUS_CLOCKD_PROGRAM, 60, {0.001, 0.002}, {}, {}, {}, true};
    ::setenv("PERSEUS_CLOCKD_SOCKET", "none", 1);
  }
  void TearDown() override { ::unsetenv("PERSEUS_CLOCKD_SOCKET"); }
  void start() {
    controller_ = std::move(ClockController::start(options_).value());
    limit(*controller_);
  }
  static void limit(ClockController& controller, int clock_mhz = 700) {
    controller.set_budget(Megahertz(700), monotonic_ns() + kWholeTest);
    controller.limit_power(Watts(250));
    controller.set(Megahertz(clock_mhz));
  }
  bool limit_becomes(double watts) {
    return eventually([&] { return driver_->power_limit() == Watts(watts); });
  }

  LeaseFolder folder_;
  ClockControllerOptions options_;
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  std::unique_ptr<simulated_gpu::SimulatedDriver> driver_;
  std::unique_ptr<ClockController> controller_;
};

TEST_F(RealBackstop, HoldsAClockThatAnotherProcessSetsToTheLimit) {
  start();
  ASSERT_TRUE(limit_becomes(250));
  ASSERT_TRUE(eventually([&] { return controller_->backstop().state == BackstopState::set; }));
  EXPECT_EQ(controller_->backstop().limit, Watts(250));
  ASSERT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  gpu_->begin(0);
  EXPECT_EQ(driver_->power(), Watts(200));
  EXPECT_FALSE(driver_->power_capped()) << "the plan's own clock is not slowed down";
  // A clock that is stuck at the highest one: without the limit it would draw 400 W.
  EXPECT_EQ(driver_->lock_clocks(Megahertz(1400), Megahertz(1400)), 0);
  EXPECT_TRUE(driver_->power_capped());
  EXPECT_EQ(driver_->power(), Watts(200));
  EXPECT_TRUE(gives_back(controller_, [&] { return driver_->power_limit() == Watts(500); }));
  EXPECT_TRUE(eventually([&] { return driver_->power() == Watts(400); }));
}

TEST_F(RealBackstop, WithoutTheOptionTheLimitIsNotTouched) {
  options_.limits_power = false;
  start();
  ASSERT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  EXPECT_EQ(controller_->backstop().state, BackstopState::none);
  EXPECT_EQ(driver_->power_limit(), Watts(500));
}

TEST_F(RealBackstop, StaysWhileItsHelperIsReplacedAndIsRestoredAtTheEnd) {
  start();
  ASSERT_TRUE(limit_becomes(250));
  for (std::int64_t helper = 1; helper <= 3; ++helper) {
    ASSERT_TRUE(eventually([&] { return controller_->working_helper() == helper; })) << controller_->why();
    ASSERT_TRUE(eventually([&] { return controller_->backstop().state == BackstopState::set; }));
    const int worker = controller_->helper_pid(), supervisor = controller_->supervisor_pid();
    if (helper != 1) ::kill(supervisor, SIGKILL);
    if (helper != 2) ::kill(worker, SIGKILL);
  }
  ASSERT_TRUE(eventually([&] { return controller_->working_helper() == 4; })) << controller_->why();
  EXPECT_EQ(driver_->power_limit(), Watts(250));
  EXPECT_TRUE(gives_back(controller_, [&] { return driver_->power_limit() == Watts(500) && !gpu_->locked(); }));
}

TEST_F(RealBackstop, FallsWhileTheTrainingProcessIsStopped) {
  std::array<int, 2> told{};
  ASSERT_EQ(::pipe(told.data()), 0);
  const pid_t training = ::fork();
  if (training == 0) {
    auto started = ClockController::start(options_);
    if (!started) ::_exit(1);
    limit(**started);
    (*started)->set_falls(std::vector<CeilingFall>{{monotonic_ns() + kBackstopSecond, Megahertz(700), Watts(210)}});
    if (::write(told[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  ::close(told[1]);
  char word = 0;
  ASSERT_EQ(::read(told[0], &word, 1), 1) << "the process is stopped only once it has said that the limit falls";
  ::close(told[0]);
  ::kill(training, SIGSTOP);
  EXPECT_TRUE(limit_becomes(210));
  ::kill(training, SIGKILL);
  ::waitpid(training, nullptr, 0);
  EXPECT_TRUE(limit_becomes(500));
}

/// Which processes of a job are killed at once.
enum Killed : unsigned { kTraining = 1, kSupervisor = 2, kWorker = 4 };

class KilledBackstop : public RealBackstop, public ::testing::WithParamInterface<unsigned> {
 protected:
  struct Pids {
    pid_t training = 0, supervisor = 0, worker = 0;
  };
  /// Another process with its helper; returns when the limit is set.
  Pids train() {
    std::array<int, 2> pipe{};
    PERSEUS_CHECK(::pipe(pipe.data()) == 0, "no pipe");
    Pids pids;
    pids.training = ::fork();
    if (pids.training == 0) {
      auto started = ClockController::start(options_);
      if (!started) ::_exit(1);
      limit(**started, 1400);
      if (!eventually([&] { return (*started)->backstop().state == BackstopState::set; })) ::_exit(1);
      const std::array<int, 2> helpers{(*started)->supervisor_pid(), (*started)->helper_pid()};
      (void)!::write(pipe[1], helpers.data(), sizeof helpers);
      // So that deaths come between the record of a limit and the limit, too.
      for (std::mt19937 random(static_cast<unsigned>(::getpid()));;) {
        (*started)->limit_power(Watts(200 + static_cast<int>(random() % 100)));
        ::usleep(static_cast<unsigned>(random() % 1000));
      }
    }
    ::close(pipe[1]);
    std::array<int, 2> helpers{};
    EXPECT_EQ(::read(pipe[0], helpers.data(), sizeof helpers), static_cast<ssize_t>(sizeof helpers));
    ::close(pipe[0]);
    pids.supervisor = helpers[0];
    pids.worker = helpers[1];
    return pids;
  }
};

TEST_P(KilledBackstop, GivesTheLimitBackWithTheClock) {
  options_.restart = {};
  std::mt19937 random(2026);
  for (int round = 0; round < 8; ++round) {
    const Pids pids = train();
    ::usleep(static_cast<unsigned>(random() % 5000));
    ASSERT_LE(driver_->power_limit(), Watts(300));
    const unsigned victims = GetParam();
    if ((victims & kSupervisor) != 0) ::kill(pids.supervisor, SIGKILL);
    if ((victims & kWorker) != 0) ::kill(pids.worker, SIGKILL);
    if ((victims & kTraining) == 0) {
      // A process of perseus-clockd holds both until the training process ends.
      EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); })) << "the ceiling";
      EXPECT_LE(driver_->power_limit(), Watts(300));
    }
    ::kill(pids.training, SIGKILL);
    ::waitpid(pids.training, nullptr, 0);
    if (victims == (kTraining | kSupervisor | kWorker)) {
      // No process is left: the next one restores it.
      const std::string command = std::string(PERSEUS_CLOCKD_PROGRAM) + " --restore >" + folder_.file("out") + " 2>&1";
      EXPECT_TRUE(eventually([&] { return std::system(command.c_str()) == 0 && !gpu_->locked(); }));
    }
    EXPECT_TRUE(limit_becomes(500)) << victims;
    EXPECT_TRUE(eventually([&] { return !gpu_->locked(); }));
  }
}

INSTANTIATE_TEST_SUITE_P(Deaths, KilledBackstop,
                         ::testing::Values(kTraining, kSupervisor, kWorker, kTraining | kSupervisor,
                                           kTraining | kWorker, kTraining | kSupervisor | kWorker));

TEST_F(RealBackstop, ADaemonSetsItOnlyWithItsOption) {
  for (const bool allowed : {false, true}) {
    DaemonProcess daemon(folder_.path(),
                         allowed ? std::vector<std::string>{"--power-limit"} : std::vector<std::string>{});
    ASSERT_TRUE(daemon.listens());
    options_.daemon = daemon.socket();
    start();
    if (allowed) {
      EXPECT_TRUE(limit_becomes(250));
    } else {
      EXPECT_TRUE(eventually([&] { return controller_->backstop().state == BackstopState::refused; }));
      EXPECT_THAT(controller_->backstop().why, HasSubstr("--power-limit"));
      EXPECT_EQ(driver_->power_limit(), Watts(500));
    }
    EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); })) << "clocks are set all the same";
    controller_.reset();
    EXPECT_TRUE(limit_becomes(500));
  }
}

TEST_F(RealBackstop, WithoutPermissionClocksAreSetAllTheSame) {
  gpu_->inject("nvmlDeviceSetPowerManagementLimit", 4, -1);
  start();
  ASSERT_TRUE(eventually([&] { return controller_->backstop().state == BackstopState::refused; }));
  EXPECT_THAT(controller_->backstop().why, HasSubstr("no permission (NVML 4)"));
  EXPECT_TRUE(eventually([&] { return gpu_->clock() == Megahertz(700); }));
  EXPECT_EQ(controller_->state(), ControlState::working);
  gpu_->inject("nvmlDeviceSetPowerManagementLimit", 0, 0);
  EXPECT_TRUE(gives_back(controller_, [&] { return !gpu_->locked(); }));
}

}  // namespace
}  // namespace perseus::clock_control
