// The ceiling and the plan lease of a power budget: in shared memory, in the helper on a hand-turned clock, and in real
// processes that hang, are stopped and are killed.
#include "training/clock_control/clock_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "daemon_process.h"
#include "fake_gpu.h"
#include "gives_back.h"
#include "lease_folder.h"
#include "simulation/simulated_gpu/simulated_gpu.h"
#include "small_gpu.h"
#include "tests/support/eventually.h"
#include "tests/support/signal_process.h"
#include "training/clock_control/clock_controller.h"
#include "training/clock_control/clock_worker.h"

namespace perseus::clock_control {
namespace {

using ::testing::ElementsAre;
using testing::eventually;

constexpr std::int64_t kOneSecond = 1'000'000'000;
constexpr std::int64_t kForLong = 3600 * kOneSecond;

TEST(ClockLimit, WithoutABudgetNothingIsBounded) {
  ClockLimit limit;
  EXPECT_EQ(limit.at(kOneSecond), ClockBounds{});
  EXPECT_EQ(limit.next_ns(), 0);
  (void)limit.cap(Megahertz(700));
  EXPECT_EQ(limit.at(kOneSecond), ClockBounds{});
}

TEST(ClockLimit, TheCeilingHoldsFromTheEndOfThePlanLeaseOn) {
  ClockLimit limit;
  limit.set(Megahertz(700), 15 * kOneSecond);
  EXPECT_EQ(limit.at(15 * kOneSecond - 1), (ClockBounds{Megahertz(0), Megahertz(700), false}));
  EXPECT_EQ(limit.next_ns(), 15 * kOneSecond);
  EXPECT_FALSE(limit.extend(20 * kOneSecond)) << "the helper wakes up at 15 s and sees the new time";
  EXPECT_EQ(limit.at(15 * kOneSecond), (ClockBounds{Megahertz(0), Megahertz(700), false}));
  EXPECT_EQ(limit.at(20 * kOneSecond), (ClockBounds{Megahertz(700), Megahertz(700), true}));
  EXPECT_EQ(limit.next_ns(), 0);
  const std::uint32_t before = limit.changes();
  EXPECT_TRUE(limit.extend(40 * kOneSecond));
  EXPECT_NE(limit.changes(), before);
  EXPECT_EQ(limit.at(21 * kOneSecond), (ClockBounds{Megahertz(0), Megahertz(700), false}));
  limit.set(Megahertz(0), 0);
  EXPECT_EQ(limit.at(50 * kOneSecond), ClockBounds{});
}

TEST(ClockLimit, OnlyTheNewestCapIsLifted) {
  ClockLimit limit;
  limit.set(Megahertz(700), kForLong);
  const std::uint32_t first = limit.cap(Megahertz(350)), second = limit.cap(Megahertz(1400));
  EXPECT_FALSE(limit.lift(first));
  EXPECT_EQ(limit.at(0), (ClockBounds{Megahertz(1400), Megahertz(700), false}));
  EXPECT_TRUE(limit.lift(second));
  EXPECT_FALSE(limit.lift(second));
  EXPECT_EQ(limit.capped_at(), Megahertz(0));
  (void)limit.cap(Megahertz(350));
  EXPECT_EQ(limit.at(kForLong), (ClockBounds{Megahertz(350), Megahertz(350), true}));
  limit.set(Megahertz(0), 0);
  limit.set(Megahertz(700), kForLong);
  EXPECT_EQ(limit.capped_at(), Megahertz(0)) << "a cap ends with its budget";
}

TEST(ClockLimit, AFallBoundsEveryClockFromItsTimeOn) {
  ClockLimit limit;
  limit.set(Megahertz(1400), kForLong);
  limit.falls(std::vector<CeilingFall>{{10 * kOneSecond, Megahertz(700)}, {20 * kOneSecond, Megahertz(350)}});
  EXPECT_EQ(limit.least_ceiling(), Megahertz(350));
  EXPECT_EQ(limit.at(9 * kOneSecond), (ClockBounds{Megahertz(0), Megahertz(1400), false}));
  EXPECT_EQ(limit.next_ns(), 10 * kOneSecond);
  EXPECT_EQ(limit.at(10 * kOneSecond), (ClockBounds{Megahertz(700), Megahertz(700), false}));
  EXPECT_EQ(limit.next_ns(), 20 * kOneSecond);
  (void)limit.cap(Megahertz(1100));
  EXPECT_EQ(limit.at(11 * kOneSecond), (ClockBounds{Megahertz(700), Megahertz(700), false})) << "the cap is higher";
  EXPECT_EQ(limit.at(20 * kOneSecond), (ClockBounds{Megahertz(350), Megahertz(350), false}));
  EXPECT_EQ(limit.next_ns(), kForLong);
  EXPECT_EQ(limit.at(kForLong), (ClockBounds{Megahertz(350), Megahertz(350), true}));
  limit.falls({});
  EXPECT_EQ(limit.at(21 * kOneSecond), (ClockBounds{Megahertz(1100), Megahertz(1100), false}));
  EXPECT_EQ(limit.least_ceiling(), Megahertz(1400));
}

TEST(ClockLimit, OfTooManyFallsTheLastOneThatFitsHasTheLeastCeiling) {
  ClockLimit limit;
  limit.set(Megahertz(1400), kForLong);
  std::vector<CeilingFall> falls;
  for (int k = 1; k <= 10; ++k) falls.push_back({k * kOneSecond, Megahertz(1400 - 100 * k)});
  limit.falls(falls);
  EXPECT_EQ(limit.at(7 * kOneSecond).locked, Megahertz(700));
  EXPECT_EQ(limit.at(8 * kOneSecond).locked, Megahertz(400));
}

class LimitedWorker : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(worker_.begin()); }
  void ask(int mhz, bool now = true, std::uint32_t position = 0) {
    ClockChange change{position, static_cast<std::uint16_t>(mhz), now};
    change.posted_ns = gpu_.now_ns;
    mailbox_.queue.post(change);
  }
  std::int64_t work_twice() {
    (void)worker_.work();
    return worker_.work();
  }

  LeaseFolder folder_;
  FakeGpu gpu_;
  Mailbox mailbox_;
  device::DeviceResult<Lease> lease_ = Lease::take(gpu_.identity(), "fake:1", 0);
  ClockWorker worker_{mailbox_, gpu_, *lease_, [this] { return gpu_.now_ns; }};
};

TEST_F(LimitedWorker, TheDriversChoiceBecomesTheHighestClockAtOrBelowTheCeiling) {
  mailbox_.limit.set(Megahertz(1399), gpu_.now_ns + kForLong);
  (void)work_twice();
  EXPECT_THAT(gpu_.calls, ElementsAre(700));
  ask(0);
  (void)work_twice();
  EXPECT_THAT(gpu_.calls, ElementsAre(700, 700));
  mailbox_.limit.set(Megahertz(100), gpu_.now_ns + kForLong);
  (void)work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 350) << "the lowest clock, if all are above the ceiling";
  mailbox_.limit.set(Megahertz(0), 0);
  (void)work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 0);
}

TEST_F(LimitedWorker, APlansClocksMayBeAboveTheCeilingUntilItsLeaseEnds) {
  ask(1400);
  mailbox_.limit.set(Megahertz(700), gpu_.now_ns + 15 * kOneSecond);
  const std::int64_t began_ns = gpu_.now_ns;
  const std::int64_t due_ns = work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 1400);
  EXPECT_EQ(gpu_.now_ns + due_ns, began_ns + 15 * kOneSecond) << "it wakes up when the lease ends, without a message";
  gpu_.now_ns += due_ns;
  EXPECT_EQ(work_twice(), -1);
  EXPECT_EQ(gpu_.locked_mhz, 700);
  ask(1400);
  (void)work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 700);
  ask(350);
  (void)work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 350);
  ask(1400);
  (void)work_twice();
  EXPECT_TRUE(mailbox_.limit.extend(gpu_.now_ns + kForLong));
  EXPECT_FALSE(mailbox_.may_rest(HelperRest::asleep, worker_.posted_before(), worker_.limit_before()));
  EXPECT_FALSE(mailbox_.may_rest(HelperRest::dozing, worker_.posted_before(), worker_.limit_before()));
  (void)work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 1400) << "the newest request is back in force";
  EXPECT_EQ(mailbox_.applied, 4) << "one per request: limits are none";
}

TEST_F(LimitedWorker, AFallComesWithoutAMessage) {
  ask(1400);
  mailbox_.limit.set(Megahertz(1400), gpu_.now_ns + kForLong);
  mailbox_.limit.falls(std::vector<CeilingFall>{{gpu_.now_ns + 5 * kOneSecond, Megahertz(800)}});
  const std::int64_t began_ns = gpu_.now_ns;
  const std::int64_t due_ns = work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 1400);
  EXPECT_LE(std::abs(gpu_.now_ns + due_ns - (began_ns + 5 * kOneSecond)), kOneSecond / 1000);
  gpu_.now_ns = began_ns + 5 * kOneSecond;
  (void)work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 700);
  ask(1400);
  (void)work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 700);
  mailbox_.limit.falls({});
  (void)work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 1400);
}

TEST_F(LimitedWorker, ACapLowersTheClockAtOnceAndChangesThatAreQueued) {
  mailbox_.limit.set(Megahertz(350), gpu_.now_ns + kForLong);
  ask(1400);
  ask(1400, false, 5);
  (void)work_twice();
  ASSERT_EQ(gpu_.locked_mhz, 1400);
  const std::uint32_t ticket = mailbox_.limit.cap(Megahertz(700));
  (void)work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 700);
  mailbox_.queue.position() = 5;
  (void)work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 700);
  EXPECT_TRUE(mailbox_.limit.lift(ticket));
  (void)work_twice();
  EXPECT_EQ(gpu_.locked_mhz, 1400);
}

TEST_F(LimitedWorker, TheLogSaysWhichClocksWereLimited) {
  mailbox_.limit.set(Megahertz(700), gpu_.now_ns + kOneSecond);
  ask(1400);
  (void)work_twice();
  gpu_.now_ns += kOneSecond;
  (void)work_twice();
  ask(350);
  (void)work_twice();
  std::vector<bool> limited;
  std::uint64_t read = 0;
  (void)mailbox_.applied_clocks.read_from(read, [&](const AppliedClock& one) { limited.push_back(one.limited); });
  EXPECT_THAT(limited, ElementsAre(false, true, false));
}

TEST_F(LimitedWorker, ABusyDeviceIsAskedUntilItTakesTheLimit) {
  ask(1400);
  (void)work_twice();
  gpu_.faults.assign(20, device::DeviceFault::busy);
  mailbox_.limit.set(Megahertz(700), gpu_.now_ns);
  for (int i = 0; i < 30; ++i) gpu_.now_ns += std::max<std::int64_t>(worker_.work(), 0);
  EXPECT_EQ(gpu_.locked_mhz, 700);
  EXPECT_EQ(mailbox_.state, HelperState::working);
}

TEST_F(LimitedWorker, TheNextHelperNeverUnlocksUnderABudget) {
  ask(1400);
  (void)work_twice();
  mailbox_.limit.set(Megahertz(700), gpu_.now_ns);
  gpu_.calls.clear();
  ClockWorker next(mailbox_, gpu_, *lease_, [this] { return gpu_.now_ns; });
  ASSERT_TRUE(next.begin());
  EXPECT_EQ(mailbox_.locked, 1U);
  (void)next.work();
  EXPECT_THAT(gpu_.calls, ElementsAre(700));
}

TEST_F(LimitedWorker, TheNextHelperGivesBackWhatIsLockedWhereTheBudgetEndsBeforeItHasLooked) {
  mailbox_.limit.set(Megahertz(700), gpu_.now_ns);
  (void)work_twice();
  ASSERT_EQ(gpu_.locked_mhz, 700);
  ClockWorker next(mailbox_, gpu_, *lease_, [this] { return gpu_.now_ns; });
  ASSERT_TRUE(next.begin());
  mailbox_.limit.set(Megahertz(0), 0);
  (void)next.work();
  EXPECT_EQ(gpu_.locked_mhz, 0);
  EXPECT_EQ(mailbox_.locked, 0U);
  EXPECT_FALSE(lease_->recorded());
}

// ---- Real processes.

/// Observes that the GPU runs at no clock above the ceiling.
class Observer {
 public:
  explicit Observer(simulated_gpu::SimulatedGpu& gpu)
      : thread_([this, &gpu] {
          while (!stop_) highest_ = std::max(highest_.load(), gpu.clock().value());
        }) {}
  ~Observer() {
    if (thread_.joinable()) (void)highest();
  }
  int highest() {
    stop_ = true;
    thread_.join();
    return highest_;
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> highest_{0};
  std::thread thread_;
};

class Budget : public ::testing::Test {
 protected:
  void SetUp() override {
    gpu_ = std::move(simulated_gpu::SimulatedGpu::create(folder_.file("gpu"), small_gpu()).value());
    options_ = {"simulated:" + folder_.file("gpu"), PERSEUS_CLOCKD_PROGRAM, 60, {0.001, 0.002}};
    ::setenv("PERSEUS_CLOCKD_SOCKET", "none", 1);
  }
  void TearDown() override {
    ::unsetenv("PERSEUS_CLOCKD_SOCKET");
    if (training_ > 0) end(training_);  // of a test that failed
  }
  void start() { controller_ = std::move(ClockController::start(options_).value()); }
  bool clock_becomes(int mhz) {
    return eventually([&] { return gpu_->clock() == Megahertz(mhz); });
  }
  /// Another process, whose helper may be restarted. Returns when the helper has set 1400 MHz under a plan lease that
  /// ends in `lease_s` at most.
  pid_t train(double lease_s) {
    std::array<int, 2> told{};
    PERSEUS_CHECK(::pipe(told.data()) == 0, "no pipe");
    training_ = ::fork();
    if (training_ == 0) {
      auto started = ClockController::start(options_);
      if (!started) ::_exit(1);
      const auto until_ns = [&] { return monotonic_ns() + static_cast<std::int64_t>(1e9 * lease_s); };
      (*started)->set_budget(Megahertz(700), until_ns());
      (*started)->set(Megahertz(1400));
      // The lease of a machine that stood still in between has ended.
      const bool set = eventually([&] {
        (*started)->extend_plan(until_ns());
        return (*started)->statistics().last_set == Megahertz(1400);
      });
      if (!set || ::write(told[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(told[1]);
    char word = 0;
    EXPECT_EQ(::read(told[0], &word, 1), 1) << "it has set its clock";
    ::close(told[0]);
    return training_;
  }
  void end(pid_t training) {
    testing::signal_process(training, SIGKILL);
    ::waitpid(training, nullptr, 0);
    training_ = 0;
    EXPECT_TRUE(eventually([&] { return !gpu_->locked(); })) << "its clock is given back";
  }
  /// A later helper than `helper` (then that one) works.
  [[nodiscard]] bool works_after(std::int64_t& helper) const {
    const std::int64_t before = helper;
    return eventually([&] { return (helper = controller_->working_helper()) > before; });
  }
  /// Each, if it is known: 0 would be this test's own process group.
  static void kill_each(std::initializer_list<int> processes) {
    for (const int process : processes) {
      if (process > 0) testing::signal_process(process, SIGKILL);
    }
  }
  /// A guard holds this test's lease.
  [[nodiscard]] bool guarded() const {
    namespace fs = std::filesystem;
    std::error_code gone;
    for (const auto& process : fs::directory_iterator("/proc")) {
      if (LeaseFolder::text_of(process.path() / "comm") != "clockd-guard\n") continue;
      for (const auto& file : fs::directory_iterator(process.path() / "fd", gone)) {
        if (fs::read_symlink(file.path(), gone).string().starts_with(folder_.file("clock-lease-"))) return true;
      }
    }
    return false;
  }

  LeaseFolder folder_;
  ClockControllerOptions options_;
  std::unique_ptr<simulated_gpu::SimulatedGpu> gpu_;
  std::unique_ptr<ClockController> controller_;
  pid_t training_ = 0;  ///< of train()
};

TEST_F(Budget, TheHelperWakesUpForEveryChangeOfTheLimits) {
  start();
  controller_->set(Megahertz(1400));
  ASSERT_TRUE(clock_becomes(1400) && eventually([&] { return gpu_->locked(); }));
  controller_->set_budget(Megahertz(700), monotonic_ns() + kForLong);
  const std::uint32_t ticket = controller_->cap(Megahertz(350));
  EXPECT_TRUE(controller_->capped());
  EXPECT_TRUE(clock_becomes(350));
  controller_->lift_cap(ticket);
  EXPECT_TRUE(clock_becomes(1400));
  controller_->set_budget(Megahertz(700), monotonic_ns());
  EXPECT_TRUE(clock_becomes(700));
  controller_->extend_plan(monotonic_ns() + kForLong);
  EXPECT_TRUE(clock_becomes(1400));
  controller_->set(Megahertz(0));
  EXPECT_TRUE(clock_becomes(700));
  controller_->set_budget(Megahertz(0), 0);
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); }));
}

TEST_F(Budget, TheEndOfTheLeaseNeedsNoMessage) {
  start();
  controller_->set(Megahertz(1400));
  controller_->set_budget(Megahertz(700), monotonic_ns() + kOneSecond / 5);
  EXPECT_TRUE(clock_becomes(700));
}

TEST_F(Budget, AStoppedTrainingProcessFallsToTheCeilingWhenItsLeaseEnds) {
  const pid_t training = train(1);
  testing::signal_process(training, SIGSTOP);
  EXPECT_TRUE(clock_becomes(700));
  testing::signal_process(training, SIGCONT);
  end(training);
}

TEST_F(Budget, ASuspendedTrainingProcessKeepsTheCeilingAndItsGuardMakesWayForTheNextHelper) {
  const pid_t training = train(1);
  testing::signal_process(training, SIGSTOP);
  ASSERT_TRUE(clock_becomes(700));
  Observer observer(*gpu_);
  EXPECT_TRUE(eventually([&] { return guarded(); })) << "after five seconds its helper ends";
  EXPECT_TRUE(gpu_->locked());
  testing::signal_process(training, SIGCONT);
  EXPECT_TRUE(eventually([&] { return !guarded(); }));
  EXPECT_EQ(observer.highest(), 700);
  end(training);
}

TEST_F(Budget, NoDeathOfAHelperRaisesTheClockAboveTheCeiling) {
  start();
  controller_->set_budget(Megahertz(700), monotonic_ns());
  controller_->set(Megahertz(1400));
  ASSERT_TRUE(clock_becomes(700) && eventually([&] { return controller_->statistics().last_set == Megahertz(700); }));
  Observer observer(*gpu_);
  std::int64_t helper = 0;
  for (int death = 1; death <= 6; ++death) {
    ASSERT_TRUE(works_after(helper)) << controller_->why();
    const int worker = controller_->helper_pid(), supervisor = controller_->supervisor_pid();
    // Also both at once: then the training process has another program keep the ceiling.
    kill_each({death % 3 != 1 ? supervisor : 0, death % 3 != 2 ? worker : 0});
  }
  ASSERT_TRUE(works_after(helper)) << controller_->why();
  controller_->set(Megahertz(350));
  EXPECT_TRUE(clock_becomes(350));
  EXPECT_EQ(observer.highest(), 700);
  EXPECT_TRUE(gives_back(controller_, [&] { return !gpu_->locked(); }));
}

TEST_F(Budget, AHelperWithoutASuccessorLeavesAGuardThatUnlocksWhenTheTrainingProcessEnds) {
  options_.restart = {};
  for (const bool supervisor_dies : {false, true}) {
    const pid_t training = ::fork();
    if (training == 0) {
      auto started = ClockController::start(options_);
      if (!started) ::_exit(1);
      (*started)->set_budget(Megahertz(700), monotonic_ns() + kForLong);
      (*started)->set(Megahertz(1400));
      if (!eventually([&] { return (*started)->statistics().last_set == Megahertz(1400); })) ::_exit(1);
      testing::signal_process(supervisor_dies ? (*started)->supervisor_pid() : (*started)->helper_pid(), SIGKILL);
      for (;;) ::pause();
    }
    SCOPED_TRACE(supervisor_dies);
    EXPECT_TRUE(clock_becomes(700)) << "from the plan's clock to the ceiling";
    EXPECT_TRUE(gpu_->locked());
    end(training);
  }
}

TEST_F(Budget, TheTrainingProcessesEndGivesTheClockBack) {
  const pid_t killed = train(3600);
  ASSERT_TRUE(gpu_->locked());
  end(killed);
  const pid_t exits = ::fork();
  if (exits == 0) {
    auto* const left_open = ClockController::start(options_).value().release();
    left_open->set_budget(Megahertz(700), monotonic_ns());
    if (!eventually([&] { return gpu_->locked(); })) ::_exit(1);
    std::exit(0);
  }
  int status = 0;
  ::waitpid(exits, &status, 0);
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); }));
}

TEST_F(Budget, ADaemonsHelperKeepsTheCeilingToo) {
  DaemonProcess daemon(folder_.path());
  ASSERT_TRUE(daemon.listens());
  options_.daemon = daemon.socket();
  start();
  controller_->set_budget(Megahertz(700), monotonic_ns());
  controller_->set(Megahertz(1400));
  ASSERT_TRUE(clock_becomes(700) && eventually([&] { return controller_->statistics().last_set == Megahertz(700); }));
  Observer observer(*gpu_);
  std::int64_t helper = 0;
  for (int death = 1; death <= 4; ++death) {
    ASSERT_TRUE(works_after(helper)) << controller_->why();
    kill_each({death % 2 == 0 ? controller_->supervisor_pid() : controller_->helper_pid()});
  }
  ASSERT_TRUE(works_after(helper)) << controller_->why();
  EXPECT_EQ(observer.highest(), 700);
  controller_.reset();
  EXPECT_TRUE(eventually([&] { return !gpu_->locked(); }));
}

TEST_F(Budget, AGuardUnlocksWhenTheBudgetEndsOrTheControllerStops) {
  options_.restart = {};
  for (const bool stops : {false, true}) {
    SCOPED_TRACE(stops);
    start();
    controller_->set_budget(Megahertz(700), monotonic_ns() + kForLong);
    controller_->set(Megahertz(1400));
    ASSERT_TRUE(eventually([&] { return controller_->statistics().last_set == Megahertz(1400); }));
    testing::signal_process(controller_->helper_pid(), SIGKILL);
    ASSERT_TRUE(clock_becomes(700) && eventually([&] { return guarded(); }));
    if (stops) {
      controller_->stop();
      controller_->set_budget(Megahertz(700), monotonic_ns() + kForLong);  // a plan that was under way
    } else {
      controller_->set_budget(Megahertz(0), 0);
    }
    EXPECT_TRUE(eventually([&] { return !gpu_->locked() && !guarded(); })) << "training goes on";
    controller_.reset();
  }
}

TEST_F(Budget, AControllerThatStopsGivesBackWhatHelpersThatWereKilledAtOnceHaveLeft) {
  options_.restart = {};
  start();
  controller_->set_budget(Megahertz(700), monotonic_ns() + kForLong);
  controller_->set(Megahertz(1400));
  ASSERT_TRUE(eventually([&] { return controller_->statistics().last_set == Megahertz(1400); }));
  // The second may not be known once the first has died.
  kill_each({controller_->supervisor_pid(), controller_->helper_pid()});
  ASSERT_TRUE(clock_becomes(700));
  EXPECT_TRUE(gives_back(controller_, [&] { return !gpu_->locked(); }));
}

}  // namespace
}  // namespace perseus::clock_control
