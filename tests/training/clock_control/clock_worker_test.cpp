// How the helper handles requests and the device's answers, on a hand-turned clock.
#include "training/clock_control/clock_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_gpu.h"
#include "lease_folder.h"

namespace perseus::clock_control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Worker : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(worker_.begin()); }
  void ask(int mhz) {
    ClockChange change;
    change.clock_mhz = static_cast<std::uint16_t>(mhz);
    change.now = true;
    post(change);
  }
  void ask_from(std::uint32_t position, int mhz) {
    ClockChange change;
    change.clock_mhz = static_cast<std::uint16_t>(mhz);
    change.position = position;
    post(change);
  }
  /// Mailbox::post at the test's time.
  void post(ClockChange change) {
    change.posted_ns = gpu_.now_ns;
    change.begins_step = mailbox_.step_begins.exchange(false);
    mailbox_.queue.post(change);
  }
  void follow() {
    gpu_.call_takes_ns = 0;
    gpu_.follows = [](int mhz) { return Megahertz(mhz == 0 ? 1400 : mhz); };
  }
  /// As the supervisor wakes the worker: every 40 ms.
  void pass_s(double seconds) {
    for (int tick = 0; tick < 25 * seconds && !worker_.ended(); ++tick) {
      gpu_.now_ns += 40'000'000;
      (void)worker_.work();
    }
  }
  [[nodiscard]] bool answered() const { return !mailbox_.owes_answer(); }
  [[nodiscard]] std::string record() const { return LeaseFolder::text_of(lease_->path()); }

  LeaseFolder folder_;
  FakeGpu gpu_;
  Mailbox mailbox_;
  device::DeviceResult<Lease> lease_ = Lease::take(gpu_.identity(), "fake:1", 0);
  ClockWorker worker_{mailbox_, gpu_, *lease_, [this] { return gpu_.now_ns; }};
};

TEST_F(Worker, AGpuWithoutRequestsIsNotTouched) {
  EXPECT_EQ(worker_.work(), -1);
  ask(0);
  EXPECT_EQ(worker_.work(), -1);
  ASSERT_TRUE(worker_.give_back());
  EXPECT_THAT(gpu_.calls, IsEmpty());
  EXPECT_EQ(record(), "");
}

TEST_F(Worker, OnlyTheNewestRequestIsApplied) {
  ask(1400);
  gpu_.now_ns += 1000;
  ask(350);
  gpu_.now_ns += 1000;
  ask(700);
  (void)worker_.work();
  (void)worker_.work();
  EXPECT_THAT(gpu_.calls, ElementsAre(700));
  EXPECT_TRUE(answered());
  EXPECT_EQ(mailbox_.clock_set_mhz, 700U);
  EXPECT_EQ(mailbox_.applied, 1);
}

TEST_F(Worker, LatenciesAreThoseOfTheRequest) {
  ask(700);
  gpu_.now_ns += 50'000;
  (void)worker_.work();
  EXPECT_NEAR(mailbox_.device_call.quantile_s(0.5), 3e-3, 0.2e-3);
  EXPECT_NEAR(mailbox_.request_to_device.quantile_s(0.5), 3.05e-3, 0.2e-3);
  EXPECT_EQ(mailbox_.clock_set_at_ns, gpu_.now_ns);
}

TEST_F(Worker, TheRecordIsThereBeforeTheLockAndUntilTheUnlock) {
  ask(700);
  (void)worker_.work();
  EXPECT_NE(record().find("gpu fake:1\n"), std::string::npos) << record();
  EXPECT_EQ(mailbox_.locked, 1U);
  ask(0);
  (void)worker_.work();
  EXPECT_EQ(record(), "");
  EXPECT_EQ(mailbox_.locked, 0U);
  EXPECT_EQ(gpu_.locked_mhz, 0);
  ask(350);
  (void)worker_.work();
  ASSERT_TRUE(worker_.give_back());
  ASSERT_TRUE(worker_.give_back());
  EXPECT_THAT(gpu_.calls, ElementsAre(700, 0, 350, 0));
  EXPECT_EQ(record(), "");
}

TEST_F(Worker, AClockThatThereIsNotBecomesTheNextAbove) {
  for (const int asked : {1, 350, 351, 1399, 9999}) {
    ask(asked);
    (void)worker_.work();
  }
  EXPECT_THAT(gpu_.calls, ElementsAre(350, 350, 700, 1400, 1400));
  EXPECT_EQ(mailbox_.failed, 0);
}

TEST_F(Worker, ABadClockIsTriedOnceMoreWithANewListOfClocks) {
  gpu_.clocks = {Megahertz(1200), Megahertz(600)};
  gpu_.faults = {device::DeviceFault::bad_clock};
  ask(700);
  (void)worker_.work();
  EXPECT_THAT(gpu_.calls, ElementsAre(700, 1200));
  EXPECT_EQ(mailbox_.clock_set_mhz, 1200U);
  gpu_.faults = {device::DeviceFault::bad_clock, device::DeviceFault::bad_clock};
  ask(600);
  (void)worker_.work();
  EXPECT_EQ(mailbox_.failed, 1);
  EXPECT_EQ(mailbox_.state, HelperState::working);
  EXPECT_EQ(mailbox_.clock_set_mhz, 1200U);
}

TEST_F(Worker, BusyIsTriedAgainLaterAndLater) {
  gpu_.faults.assign(3, device::DeviceFault::busy);
  ask(700);
  std::vector<std::int64_t> pauses_ms;
  for (std::int64_t due_ns = worker_.work(); mailbox_.applied == 0; due_ns = worker_.work()) {
    ASSERT_GE(due_ns, 0);
    pauses_ms.push_back(due_ns / 1'000'000);
    gpu_.now_ns += due_ns / 2;
    EXPECT_GT(worker_.work(), 0);  // not yet
    gpu_.now_ns += due_ns - due_ns / 2;
  }
  EXPECT_THAT(pauses_ms, ElementsAre(1, 2, 4));
  EXPECT_THAT(gpu_.calls, ElementsAre(700, 700, 700, 700));
  EXPECT_EQ(mailbox_.failed, 0);
}

TEST_F(Worker, ANewerRequestDoesNotWaitForABusyOne) {
  gpu_.faults.assign(1, device::DeviceFault::busy);
  ask(700);
  EXPECT_GT(worker_.work(), 0);
  ask(350);
  (void)worker_.work();
  EXPECT_THAT(gpu_.calls, ElementsAre(700, 350));
  EXPECT_EQ(mailbox_.applied, 1);
}

TEST_F(Worker, ForeverBusyFailsAndTheNextRequestIsTried) {
  gpu_.faults.assign(9, device::DeviceFault::busy);
  ask(700);
  for (int i = 0; i < 1000 && mailbox_.failed == 0; ++i) { gpu_.now_ns += std::max<std::int64_t>(worker_.work(), 0); }
  EXPECT_EQ(gpu_.calls.size(), 8U);
  EXPECT_GT(worker_.work(), 0) << "it continues to try";
  EXPECT_TRUE(answered());
  EXPECT_EQ(mailbox_.state, HelperState::working);
  EXPECT_NE(record(), "") << "a call that timed out may have locked";
  ask(350);
  (void)worker_.work();
  EXPECT_EQ(gpu_.locked_mhz, 350);
}

TEST_F(Worker, ABusyDriverThatAnswersAgainGetsTheClockThatFailed) {
  gpu_.faults.assign(12, device::DeviceFault::busy);
  ask(700);
  for (std::int64_t due_ns = worker_.work(); due_ns >= 0; due_ns = worker_.work()) {
    gpu_.now_ns += due_ns;
    if (gpu_.locked_mhz == 700) gpu_.running_at = Megahertz(700);
  }
  EXPECT_EQ(gpu_.locked_mhz, 700);
  EXPECT_EQ(mailbox_.failed, 1);
  EXPECT_FALSE(worker_.ended());
}

/// Every call of the driver fails with "unknown error", as after the GPU was taken from the container.
TEST_F(Worker, ADriverThatAnswersNoCallIsLost) {
  ask(350);
  (void)worker_.work();
  for (const bool requests : {false, true}) {
    ClockWorker worker(mailbox_, gpu_, *lease_, [this] { return gpu_.now_ns; });
    gpu_.faults.clear();
    ASSERT_TRUE(worker.begin());
    gpu_.faults.assign(10'000, device::DeviceFault::busy);
    ask(700);
    const std::int64_t began_ns = gpu_.now_ns;
    for (int i = 0; i < 100'000 && !worker.ended(); ++i) {
      if (requests) ask(i % 2 == 0 ? 350 : 700);  // each replaces one before it has failed
      gpu_.now_ns += std::max<std::int64_t>(worker.work(), 0) + 1;
    }
    ASSERT_TRUE(worker.ended()) << requests;
    EXPECT_NEAR(static_cast<double>(gpu_.now_ns - began_ns), 5e9, 0.2e9);
    EXPECT_EQ(mailbox_.state, HelperState::lost);
    EXPECT_THAT(mailbox_.why_ended.read(), HasSubstr("answered no call for 5 s"));
    EXPECT_EQ(mailbox_.locked, 1U);
    EXPECT_NE(record(), "");
    mailbox_.begin_again();
  }
}

TEST_F(Worker, AClockThatTheGpuLacksDoesNotLeaveItAtALowerOne) {
  ask(350);
  (void)worker_.work();
  gpu_.faults.assign(2, device::DeviceFault::bad_clock);
  ask(1400);
  (void)worker_.work();
  EXPECT_THAT(gpu_.calls, ElementsAre(350, 1400, 1400, 0));
  EXPECT_EQ(mailbox_.state, HelperState::working);
  EXPECT_EQ(record(), "");
}

TEST_F(Worker, ALockLeftByTheLastHolderIsGivenBackThoughTheResetFailsOnce) {
  ask(700);
  (void)worker_.work();  // the helper is killed here
  for (const device::DeviceFault fault : {device::DeviceFault::lost, device::DeviceFault::no_permission}) {
    ASSERT_TRUE(lease_->record());
    gpu_.faults = {fault};
    ClockWorker next(mailbox_, gpu_, *lease_, [this] { return gpu_.now_ns; });
    EXPECT_TRUE(next.begin());
    EXPECT_EQ(record(), "");
  }
  ASSERT_TRUE(lease_->record());
  mailbox_.locked = 0;
  gpu_.faults.assign(FakeGpu::kAlways, device::DeviceFault::lost);
  ClockWorker next(mailbox_, gpu_, *lease_, [this] { return gpu_.now_ns; });
  EXPECT_FALSE(next.begin());
  EXPECT_EQ(mailbox_.locked, 1U) << "it is still locked";
}

TEST_F(Worker, NoPermissionRefusesAndOwesNothing) {
  gpu_.faults = {device::DeviceFault::no_permission};
  ask(700);
  EXPECT_EQ(worker_.work(), -1);
  EXPECT_EQ(mailbox_.state, HelperState::refused);
  EXPECT_EQ(mailbox_.why_ended.read(), "injected fault");
  EXPECT_EQ(record(), "");
  EXPECT_TRUE(answered());
  EXPECT_THAT(gpu_.calls, ElementsAre(700));
  EXPECT_TRUE(worker_.ended());
}

TEST_F(Worker, ClocksLockedByTheLastHolderAreUnlockedFirst) {
  ask(700);
  (void)worker_.work();  // the helper is killed here
  ClockWorker next(mailbox_, gpu_, *lease_, [this] { return gpu_.now_ns; });
  ASSERT_TRUE(next.begin());
  EXPECT_THAT(gpu_.calls, ElementsAre(700, 0));
  EXPECT_EQ(record(), "");
}

TEST_F(Worker, OneThatTakesOverBeginsWithTheNewestAndCountsItOnce) {
  ask(700);
  (void)worker_.work();
  ASSERT_TRUE(worker_.give_back());
  for (const bool while_there_was_none : {false, true}) {
    if (while_there_was_none) ask(350);
    gpu_.now_ns += 10'000'000'000;
    mailbox_.begin_again();
    EXPECT_EQ(mailbox_.clock_set_mhz, 0U);
    ClockWorker next(mailbox_, gpu_, *lease_, [this] { return gpu_.now_ns; });
    ASSERT_TRUE(next.begin());
    EXPECT_EQ(mailbox_.state, HelperState::working);
    EXPECT_FALSE(answered());
    (void)next.work();
    EXPECT_EQ(gpu_.locked_mhz, while_there_was_none ? 350 : 700);
    EXPECT_TRUE(answered());
    EXPECT_EQ(mailbox_.applied, while_there_was_none ? 2 : 1);
    EXPECT_LT(mailbox_.request_to_device.quantile_s(1), 1) << "the time without a helper is no latency";
    ASSERT_TRUE(next.give_back());
  }
}

TEST_F(Worker, OneThatIsRefusedAgainCountsThatOnceAndIsNotWorkingWhenItIsDone) {
  gpu_.faults = {device::DeviceFault::no_permission, device::DeviceFault::no_permission};
  ask(700);
  (void)worker_.work();
  mailbox_.begin_again();
  EXPECT_EQ(mailbox_.why_ended.read(), "");
  ClockWorker next(mailbox_, gpu_, *lease_, [this] { return gpu_.now_ns; });
  ASSERT_TRUE(next.begin());
  (void)next.work();
  EXPECT_EQ(mailbox_.state, HelperState::refused);
  EXPECT_EQ(mailbox_.why_ended.read(), "injected fault");
  EXPECT_EQ(mailbox_.failed, 1);
}

TEST_F(Worker, AClockThatCannotBeGivenBackIsReportedWithWhatToRun) {
  ask(350);
  (void)worker_.work();
  gpu_.faults.assign(FakeGpu::kAlways, device::DeviceFault::no_permission);  // as a token that expires
  ask(700);
  (void)worker_.work();
  EXPECT_EQ(mailbox_.state, HelperState::refused);
  EXPECT_THAT(mailbox_.why_ended.read(), HasSubstr("stays locked until perseus-clockd --restore"));
  EXPECT_NE(record(), "");
  EXPECT_EQ(mailbox_.locked, 1U);
}

TEST_F(Worker, PermissionThatIsTakenAwayGivesTheClockBack) {
  ask(350);
  (void)worker_.work();
  gpu_.faults = {device::DeviceFault::no_permission};
  ask(700);
  (void)worker_.work();
  EXPECT_EQ(mailbox_.state, HelperState::refused);
  EXPECT_THAT(gpu_.calls, ElementsAre(350, 700, 0));
  EXPECT_EQ(record(), "");
}

TEST_F(Worker, ALostGpuEndsItAndItsLockStaysOnRecord) {
  ask(350);
  (void)worker_.work();
  gpu_.faults.assign(FakeGpu::kAlways, device::DeviceFault::lost);
  ask(700);
  (void)worker_.work();
  EXPECT_TRUE(worker_.ended());
  EXPECT_EQ(mailbox_.why_ended.read(), "injected fault");
  EXPECT_FALSE(worker_.give_back());
  EXPECT_NE(record(), "");
  gpu_.faults.clear();
  EXPECT_TRUE(worker_.give_back());
  EXPECT_EQ(record(), "");
}

TEST_F(Worker, TheTimeUntilTheClockIsThereIsSeen) {
  gpu_.call_takes_ns = 0;
  ask(700);
  std::int64_t due_ns = worker_.work();
  for (int looks = 0; looks < 40; ++looks) {
    ASSERT_GT(due_ns, 0);
    gpu_.now_ns += due_ns;
    due_ns = worker_.work();
  }
  gpu_.running_at = Megahertz(700);
  gpu_.now_ns += due_ns;
  EXPECT_EQ(worker_.work(), -1);
  EXPECT_EQ(mailbox_.call_to_clock.count(), 1);
  EXPECT_NEAR(mailbox_.call_to_clock.quantile_s(0.5), 10e-3, 1e-3);
}

TEST_F(Worker, AGpuThatNeverGetsThereIsNotWatchedForEver) {
  ask(350);
  for (int looks = 0; looks < 10'000; ++looks) {
    const std::int64_t due_ns = worker_.work();
    if (due_ns < 0) break;
    gpu_.now_ns += due_ns;
  }
  EXPECT_EQ(worker_.work(), -1);
  EXPECT_EQ(mailbox_.call_to_clock.count(), 0);
}

TEST_F(Worker, AChangeDuringAnotherHasNoLatency) {
  gpu_.call_takes_ns = 0;
  const auto pass_ms = [&](int ms) {
    for (int quarter = 0; quarter < 4 * ms; ++quarter) {
      gpu_.now_ns += 250'000;
      (void)worker_.work();
    }
  };
  ask(700);
  (void)worker_.work();
  pass_ms(5);
  gpu_.running_at = Megahertz(700);
  pass_ms(5);
  ASSERT_EQ(mailbox_.call_to_clock.count(), 1);
  // There and back within the latency: the GPU still reports 700 MHz, the clock from before both changes.
  ask(350);
  (void)worker_.work();
  pass_ms(2);
  ask(700);
  (void)worker_.work();
  pass_ms(2);
  // The first of two changes takes effect, and looks like the third.
  ask(350);
  (void)worker_.work();
  gpu_.running_at = Megahertz(350);
  pass_ms(1);
  EXPECT_EQ(mailbox_.call_to_clock.count(), 1);
  // When all have taken effect, the next one counts.
  pass_ms(150);
  ask(700);
  (void)worker_.work();
  pass_ms(5);
  gpu_.running_at = Megahertz(700);
  pass_ms(1);
  EXPECT_EQ(mailbox_.call_to_clock.count(), 2);
  EXPECT_NEAR(mailbox_.call_to_clock.quantile_s(0.5), 5e-3, 1e-3);
}

TEST_F(Worker, AnArrivalSeenLateHasNoLatency) {
  gpu_.call_takes_ns = 0;
  ask(700);
  (void)worker_.work();
  gpu_.now_ns += 250'000;
  (void)worker_.work();
  gpu_.running_at = Megahertz(700);
  gpu_.now_ns += 20'000'000;  // the helper was not scheduled
  (void)worker_.work();
  EXPECT_EQ(mailbox_.call_to_clock.count(), 0);
}

TEST_F(Worker, MostChangesAreNotWatched) {
  for (int i = 0; i < 640; ++i) {
    ask(i % 2 == 0 ? 700 : 350);
    (void)worker_.work();
    gpu_.running_at = Megahertz(i % 2 == 0 ? 700 : 350);
    gpu_.now_ns += 250'000;
    (void)worker_.work();
  }
  EXPECT_EQ(mailbox_.applied, 640);
  EXPECT_EQ(mailbox_.call_to_clock.count(), 8 + 10);
}

TEST_F(Worker, AGpuThatRunsAStepBelowItsClockArrivesToo) {
  gpu_.call_takes_ns = 0;
  gpu_.follows = [](int mhz) { return Megahertz(mhz == 0 ? 1400 : mhz - 15); };
  for (int i = 0; i < 4; ++i) {
    ask(i % 2 == 0 ? 700 : 350);
    for (int quarter = 0; quarter < 8; ++quarter) {
      (void)worker_.work();
      gpu_.now_ns += 250'000;
    }
    gpu_.now_ns += 200'000'000;
  }
  pass_s(10);
  EXPECT_EQ(gpu_.calls.size(), 4U) << "none is set again";
  EXPECT_EQ(mailbox_.device_clock.read().other, Megahertz(0));
}

TEST_F(Worker, AClockThatAnotherProcessLocksIsSetAgainWithinASecond) {
  follow();
  ask(1400);
  pass_s(60);
  EXPECT_THAT(gpu_.calls, ElementsAre(1400)) << "the plan's clock stays";
  for (const int other : {700, 0}) {
    gpu_.running_at = Megahertz(other == 0 ? 1400 : other);
    if (other == 0) {
      ask(700);
      pass_s(1);
      gpu_.running_at = Megahertz(1400);  // unlocked by another process
    }
    const int wanted = other == 0 ? 700 : 1400;
    pass_s(1);
    EXPECT_EQ(gpu_.running_at, Megahertz(wanted));
    EXPECT_EQ(gpu_.calls.back(), wanted);
  }
  pass_s(1);
  const DeviceClock seen = mailbox_.device_clock.read();
  EXPECT_EQ(seen.foreign, 2);
  EXPECT_EQ(seen.foreign_clock, Megahertz(1400));
  EXPECT_EQ(seen.other, Megahertz(0));
  EXPECT_EQ(mailbox_.state, HelperState::working);
}

TEST_F(Worker, AClockThatIsChangedAgainAndAgainIsGivenUpInWords) {
  follow();
  ask(1400);
  for (int second = 0; second < 60 && !worker_.ended(); ++second) {
    gpu_.running_at = Megahertz(700);
    pass_s(2);
  }
  EXPECT_TRUE(worker_.ended());
  EXPECT_EQ(mailbox_.state, HelperState::refused);
  EXPECT_THAT(mailbox_.why_ended.read(), HasSubstr("another process changes the GPU's clock again and again"));
  EXPECT_EQ(mailbox_.device_clock.read().given_up, 1);
  EXPECT_EQ(record(), "");
}

TEST_F(Worker, UnderABudgetAClockAboveTheCeilingIsSetAgainAtOnceAndForEver) {
  follow();
  mailbox_.limit.set(Megahertz(700), 0);
  pass_s(1);
  ASSERT_EQ(gpu_.running_at, Megahertz(700));
  for (int i = 0; i < 50; ++i) {
    gpu_.running_at = Megahertz(1400);
    for (int look = 0; look < 10 && gpu_.running_at != Megahertz(700); ++look) pass_s(0.04);
    EXPECT_EQ(gpu_.running_at, Megahertz(700)) << i;
    pass_s(1);
  }
  EXPECT_EQ(mailbox_.state, HelperState::working);
  EXPECT_EQ(mailbox_.device_clock.read().foreign, 50);
  gpu_.follows = {};
  gpu_.running_at = Megahertz(1400);
  pass_s(60);
  EXPECT_EQ(mailbox_.state, HelperState::working);
  EXPECT_EQ(mailbox_.device_clock.read().other, Megahertz(1400));
}

TEST_F(Worker, ALimitThatTheDeviceNamesIsReportedAndNotFought) {
  follow();
  ask(1400);
  pass_s(10);
  gpu_.running_at = Megahertz(700);
  const auto limited_by = [&](device::ClockEvents events) {
    gpu_.events = events;
    pass_s(2);
    return mailbox_.device_clock.read().limited_by;
  };
  device::ClockEvents cap, heat, brake;
  cap.power_cap = heat.thermal = brake.power_brake = true;
  EXPECT_EQ(limited_by(cap), kLimitedByPowerCap);
  EXPECT_EQ(limited_by(heat), kLimitedByHeat);
  EXPECT_EQ(limited_by(brake), kLimitedByPowerBrake);
  EXPECT_EQ(mailbox_.device_clock.read().other, Megahertz(700));
  EXPECT_EQ(mailbox_.device_clock.read().set, Megahertz(1400));
  EXPECT_THAT(gpu_.calls, ElementsAre(1400));
  gpu_.events = {};
  gpu_.running_at = Megahertz(1400);
  pass_s(2);
  EXPECT_EQ(mailbox_.device_clock.read().limited_by, 0U);
  EXPECT_EQ(mailbox_.device_clock.read().foreign, 0);
}

TEST_F(Worker, ALimitIsReportedWhereThePlansClocksChangeAllTheTime) {
  follow();
  const auto computes = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ask(i % 2 == 0 ? 1400 : 700);
      for (int tick = 0; tick < 4; ++tick) {
        (void)worker_.work();
        gpu_.now_ns += 10'000'000;
      }
    }
  };
  computes(201);
  gpu_.follows = [](int mhz) { return Megahertz(std::min(mhz, 900)); };
  gpu_.events.power_cap = true;
  computes(50);  // 2 s
  for (int i = 0; i < 100; ++i) {
    computes(1);
    EXPECT_EQ(mailbox_.device_clock.read().limited_by, kLimitedByPowerCap) << i << ": also at the lower clock";
  }
  follow();
  gpu_.events.power_cap = false;
  computes(50);
  EXPECT_EQ(mailbox_.device_clock.read().limited_by, 0U);
  EXPECT_EQ(mailbox_.state, HelperState::working);
}

TEST_F(Worker, APowerCapBelowAClockThatWasNeverHeldIsHowTheDeviceIs) {
  gpu_.events.power_cap = true;
  gpu_.running_at = Megahertz(1000);
  ask(1400);
  pass_s(60);
  EXPECT_EQ(mailbox_.device_clock.read().limited_by, 0U);
}

TEST_F(Worker, APowerCapThatStaysIsHowTheDeviceIsFromThenOn) {
  follow();
  ask(1400);
  pass_s(60);
  gpu_.events.power_cap = true;
  gpu_.running_at = Megahertz(1000);
  pass_s(300);
  EXPECT_EQ(mailbox_.device_clock.read().limited_by, kLimitedByPowerCap);
  pass_s(600);
  EXPECT_EQ(mailbox_.device_clock.read().limited_by, 0U);
  gpu_.events.power_cap = false;
  gpu_.running_at = Megahertz(1400);
  pass_s(10);
  gpu_.events.power_cap = true;
  gpu_.running_at = Megahertz(1000);
  pass_s(10);
  EXPECT_EQ(mailbox_.device_clock.read().limited_by, kLimitedByPowerCap) << "it has held the clock again";
}

TEST_F(Worker, MomentsAtAClockDoNotMakeItOneThatWasHeld) {
  ask(1400);
  for (int i = 0; i < 100; ++i) {
    gpu_.events.power_cap = i % 4 != 0;
    gpu_.running_at = Megahertz(gpu_.events.power_cap ? 1000 : 1400);
    pass_s(0.5);
    EXPECT_EQ(mailbox_.device_clock.read().limited_by, 0U) << i;
  }
}

TEST_F(Worker, AnIdleGpuMayRunSlower) {
  gpu_.events.idle = true;
  gpu_.running_at = Megahertz(210);
  ask(1400);
  pass_s(60);
  EXPECT_THAT(gpu_.calls, ElementsAre(1400));
}

TEST_F(Worker, AnAmdGpuBelowItsLimitFollows) {
  gpu_.is_of_amd();
  gpu_.call_takes_ns = 0;
  ask(1400);
  for (const int mhz : {132, 1400, 900, 1390, 132, 1450, 132, 132, 1400, 300}) {
    gpu_.running_at = Megahertz(mhz);
    pass_s(3);
    EXPECT_EQ(mailbox_.device_clock.read().other, Megahertz(0)) << mhz;
    EXPECT_EQ(mailbox_.device_clock.read().limited_by, 0U) << mhz;
  }
  EXPECT_THAT(gpu_.calls, ElementsAre(1400));
  EXPECT_EQ(mailbox_.device_clock.read().foreign, 0);
  gpu_.running_at = Megahertz(2100);
  pass_s(0.6);
  EXPECT_GE(gpu_.calls.size(), 2U) << "above its limit it does not follow";
}

TEST_F(Worker, AGpuThatTakesLocksAndIgnoresThemIsGivenUpWithinAMinute) {
  ask(700);  // it stays at 1400
  pass_s(30);
  EXPECT_EQ(mailbox_.state, HelperState::refused);
  EXPECT_THAT(mailbox_.why_ended.read(),
              HasSubstr("the GPU does not follow: it runs at 1400 MHz where 700 MHz is set"));
  EXPECT_EQ(gpu_.calls.back(), 0);
  EXPECT_EQ(record(), "");
}

TEST_F(Worker, AGpuThatIgnoresClocksThatChangeAllTheTimeIsGivenUpWithinAMinute) {
  gpu_.running_at = Megahertz(350);
  gpu_.call_takes_ns = 0;
  for (int i = 0; i < 60'000 / 20 && !worker_.ended(); ++i) {
    ask(i % 2 == 0 ? 1400 : 700);
    for (int tick = 0; tick < 4; ++tick) {
      (void)worker_.work();
      gpu_.now_ns += 5'000'000;
    }
  }
  EXPECT_EQ(mailbox_.state, HelperState::refused);
  EXPECT_THAT(mailbox_.why_ended.read(), HasSubstr("does not follow"));
}

TEST_F(Worker, AGpuThatDoesNotReachItsHighestClockIsLimitedAndFollowsOtherwise) {
  gpu_.follows = [](int mhz) { return Megahertz(mhz == 0 ? 1000 : std::min(mhz, 1000)); };
  gpu_.running_at = Megahertz(1000);
  ask(1400);
  pass_s(20);
  EXPECT_EQ(mailbox_.device_clock.read().limited_by, kLimitedUnexplained);
  EXPECT_LE(gpu_.calls.size(), 4U);
  for (int i = 0; i < 100; ++i) {
    ask(i % 2 == 0 ? 700 : 1400);
    pass_s(1);
  }
  EXPECT_EQ(mailbox_.state, HelperState::working);
}

TEST_F(Worker, AGpuWhoseDriverAnswersNothingMoreIsLostInWords) {
  follow();
  ask(700);
  pass_s(1);
  gpu_.unreadable = device::DeviceFault::busy;
  gpu_.faults.assign(1'000'000, device::DeviceFault::busy);
  pass_s(30);
  EXPECT_EQ(mailbox_.state, HelperState::lost);
  EXPECT_THAT(mailbox_.why_ended.read(), HasSubstr("the driver has answered no call for 5 s"));
  EXPECT_NE(record(), "") << "the lease stays";
}

TEST_F(Worker, AClockThatCannotBeReadIsSetAllTheSame) {
  follow();
  for (const device::DeviceFault fault : {device::DeviceFault::not_supported, device::DeviceFault::busy}) {
    gpu_.unreadable = fault;
    ask(fault == device::DeviceFault::busy ? 700 : 350);
    pass_s(60);
    EXPECT_EQ(mailbox_.state, HelperState::working);
  }
}

TEST_F(Worker, TwoHelpersOfOneGpuWithLeasesOfTheirOwnSeeTheConflict) {
  follow();
  Mailbox other_box;
  FakeGpu other_face("GPU-fake-2");  // the lease of another folder
  device::DeviceResult<Lease> other_lease = Lease::take(other_face.identity(), "fake:1", 0);
  ClockWorker other(other_box, gpu_, *other_lease, [this] { return gpu_.now_ns; });
  ASSERT_TRUE(other.begin());
  ClockChange change;
  change.clock_mhz = 350;
  change.now = true;
  change.posted_ns = gpu_.now_ns;
  other_box.queue.post(change);
  ask(1400);
  for (int tick = 0; tick < 180 * 25 && !worker_.ended() && !other.ended(); ++tick) {
    pass_s(0.04);
    (void)other.work();
    if (tick == 5 * 25) {
      EXPECT_EQ(mailbox_.device_clock.read().other, Megahertz(350));
      EXPECT_GE(other_box.device_clock.read().foreign, 1);
    }
  }
  EXPECT_TRUE(worker_.ended() || other.ended());
  EXPECT_THAT(mailbox_.why_ended.read() + other_box.why_ended.read(), HasSubstr("another process changes"));
}

TEST_F(Worker, FromTheSecondStepOnItExpectsRequests) {
  gpu_.call_takes_ns = 0;
  constexpr std::int64_t kGap = 40'000'000, kLate = 1'000'000;
  for (int step = 0; step < 3; ++step) {
    mailbox_.begin_step();
    for (std::uint32_t i = 0; i < 2; ++i) {
      ask(i == 0 ? 700 : 350);
      gpu_.running_at = Megahertz(i == 0 ? 700 : 350);
      gpu_.now_ns += kLate;
      const Rest rest = worker_.rest(worker_.work());
      EXPECT_EQ(rest.how, HelperRest::asleep);
      EXPECT_EQ(rest.limit_ns > 0, step > 0) << step << ' ' << i;
      gpu_.now_ns += kGap - kLate;
      if (rest.limit_ns < 0) continue;
      EXPECT_LT(rest.limit_ns, kGap - kLate) << "counted from when it was asked for";
      EXPECT_EQ(worker_.rest(worker_.work()).how, HelperRest::awake) << "when it is due";
    }
  }
  gpu_.now_ns += kGap;
  const Rest rest = worker_.rest(worker_.work());
  EXPECT_EQ(rest.how, HelperRest::asleep) << "training has stopped";
  EXPECT_EQ(rest.limit_ns, -1);
}

TEST_F(Worker, AClockWaitsForTheDevice) {
  ask_from(1, 700);
  ask_from(2, 350);
  EXPECT_EQ(worker_.work(), -1);
  EXPECT_THAT(gpu_.calls, IsEmpty());
  EXPECT_EQ(worker_.rest(-1).how, HelperRest::dozing);
  mailbox_.queue.position() = 1;
  (void)worker_.work();
  EXPECT_THAT(gpu_.calls, ElementsAre(700));
  mailbox_.queue.position() = 2;
  (void)worker_.work();
  EXPECT_THAT(gpu_.calls, ElementsAre(700, 350));
  EXPECT_TRUE(answered());
}

TEST_F(Worker, AppliedClocksAreLoggedWithTheirPosition) {
  ask_from(7, 700);
  mailbox_.queue.position() = 8;
  const std::int64_t began_ns = gpu_.now_ns;
  (void)worker_.work();
  std::uint64_t read = 0;
  std::vector<AppliedClock> log;
  mailbox_.applied_clocks.read_from(read, [&](const AppliedClock& applied) { log.push_back(applied); });
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(log[0].call_ns, began_ns);
  EXPECT_EQ(log[0].clock_mhz, 700);
  EXPECT_EQ(log[0].position, 7U);
  EXPECT_TRUE(log[0].at_device_time);
}

/// Runs steps of two changes; in the last step the device is `early` ahead of the rhythm. Returns the longest delay
/// until that step's changes are applied.
TEST_F(Worker, ItLooksForTheDeviceOftenWhenItIsExpectedAndOftenEnoughWhenNot) {
  gpu_.call_takes_ns = 0;
  constexpr std::int64_t kGap = 40'000'000;
  std::uint32_t position = 0;
  std::int64_t looks = 0;
  const auto next = [&](std::int64_t gap_ns, int mhz) {
    ask_from(++position, mhz);
    gpu_.running_at = Megahertz(mhz);
    const std::int64_t arrives_ns = gpu_.now_ns + gap_ns;
    for (const std::size_t before = gpu_.calls.size(); gpu_.calls.size() == before; ++looks) {
      if (gpu_.now_ns >= arrives_ns) mailbox_.queue.position() = position;
      const Rest rest = worker_.rest(worker_.work());
      if (gpu_.calls.size() != before) break;
      EXPECT_GT(rest.limit_ns, 0);
      gpu_.now_ns += rest.limit_ns;
    }
    return gpu_.now_ns - arrives_ns;
  };
  for (int step = 0; step < 6; ++step) {
    mailbox_.begin_step();
    looks = 0;
    for (const int mhz : {700, 350}) {
      const std::int64_t late_ns = next(kGap, mhz);
      if (step >= 3) { EXPECT_LE(late_ns, 80'000) << step; }
    }
  }
  EXPECT_LT(looks, 2 * 80) << "most of the time it sleeps";
  mailbox_.begin_step();
  EXPECT_LE(next(kGap * 6 / 10, 700), 2'000'000) << "a new plan is faster";
  EXPECT_LE(next(kGap * 2, 350), 800'000) << "or something stalls";
}

TEST_F(Worker, BoundariesBetweenEqualClocksAreNotLookedFor) {
  gpu_.call_takes_ns = 0;
  constexpr std::int64_t kComputation = 10'000'000;
  constexpr int kLearning = 40, kSteps = 60, kBoundaries = 4;  // one change every kBoundaries boundaries
  const std::int64_t began_ns = gpu_.now_ns;
  int looks = 0;
  for (int step = 0; step < kSteps; ++step) {
    mailbox_.begin_step();
    const int mhz = step % 2 == 0 ? 700 : 350;
    ask_from(static_cast<std::uint32_t>((step + 1) * kBoundaries), mhz);
    gpu_.running_at = Megahertz(mhz);
    for (const std::size_t before = gpu_.calls.size();; looks += step >= kLearning ? 1 : 0) {
      mailbox_.queue.position() = static_cast<std::uint32_t>((gpu_.now_ns - began_ns) / kComputation);
      const Rest rest = worker_.rest(worker_.work());
      if (gpu_.calls.size() != before) break;
      ASSERT_GT(rest.limit_ns, 0);
      gpu_.now_ns += rest.limit_ns;
    }
  }
  EXPECT_LT(looks, 6 * (kSteps - kLearning));
}

TEST_F(Worker, EveryLookIsASignOfLifeAlsoWhereThereIsNothingToDo) {
  int looks = 0;
  ClockWorker worker(mailbox_, gpu_, *lease_, [&] { return ++looks, gpu_.now_ns; });
  ASSERT_TRUE(worker.begin());
  mailbox_.position_wakes = true;
  ask_from(1, 700);
  for (int i = 0; i < 3; ++i) {
    const int before = looks;
    (void)worker.rest(worker.work());
    EXPECT_GT(looks, before) << "the supervisor would end it";
  }
}

TEST_F(Worker, APositionThatWakesNeedsNoLooking) {
  mailbox_.position_wakes = true;
  ask_from(1, 700);
  const Rest rest = worker_.rest(worker_.work());
  EXPECT_EQ(rest.how, HelperRest::dozing);
  EXPECT_EQ(rest.limit_ns, -1);
}

TEST_F(Worker, AMessageOfAnyLengthFits) {
  SharedText text;
  text.write(std::string(5000, 'x'));
  text.write("later");
  EXPECT_EQ(text.read(), std::string(511, 'x'));
}

}  // namespace
}  // namespace perseus::clock_control
