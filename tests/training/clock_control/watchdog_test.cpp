// When the supervisor intervenes, on a hand-turned clock.
#include "training/clock_control/watchdog.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "fake_gpu.h"
#include "training/clock_control/worker_pulse.h"
#include "training/device/gpu.h"

namespace perseus::clock_control {
namespace {

using Advice = Watchdog::Advice;
constexpr std::int64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;

class Watching : public ::testing::Test {
 protected:
  /// Looks every tick. Returns when this advice comes, ns from `began_ns`, or nothing if not within `limit_ns`.
  std::optional<std::int64_t> until(Advice wanted, std::int64_t limit_ns) {
    const std::int64_t began_ns = seen_.now_ns;
    while (seen_.now_ns - began_ns <= limit_ns) {
      seen_.now_ns += Watchdog::kTick;
      const Advice advice = watchdog_.look(seen_);
      if (advice == wanted) return seen_.now_ns - began_ns;
      if (answers_ && advice == Advice::wake_worker) seen_.looked_ns = seen_.now_ns;
    }
    return std::nullopt;
  }
  char worker_ = 'S', owner_ = 'S';
  bool answers_ = true;  ///< the worker looks when it is woken
  int asked_for_state_ = 0;
  Watchdog::Seen seen_{5 * kSecond, true, 5 * kSecond, 0, 100};
  Watchdog watchdog_{[this] {
                       ++asked_for_state_;
                       return worker_;
                     },
                     [this] { return owner_; }};
};

TEST_F(Watching, NothingToDoIsNothingToLookFor) {
  seen_.busy = false;
  EXPECT_EQ(watchdog_.look(seen_), Advice::sleep);
  seen_.now_ns += 3600 * kSecond;
  seen_.busy = true;
  EXPECT_NE(watchdog_.look(seen_), Advice::worker_hangs);
}

TEST_F(Watching, AWorkerThatAnswersIsLeftAlone) {
  EXPECT_FALSE(until(Advice::worker_hangs, 60 * kSecond));
  EXPECT_EQ(asked_for_state_, 0);
}

TEST_F(Watching, AWorkerThatIsStoppedOrSleepsOnIsFoundWithin200Milliseconds) {
  for (const char state : {'T', 'S'}) {
    worker_ = state;
    seen_.looked_ns = seen_.now_ns;
    answers_ = true;
    ASSERT_FALSE(until(Advice::worker_hangs, kSecond));
    answers_ = false;
    const auto found_ns = until(Advice::worker_hangs, 10 * kSecond);
    ASSERT_TRUE(found_ns);
    EXPECT_LE(*found_ns, 200 * kMillisecond);
  }
}

TEST_F(Watching, AWorkerWithoutACoreHasTwoSeconds) {
  worker_ = 'R';
  answers_ = false;
  const auto found_ns = until(Advice::worker_hangs, 10 * kSecond);
  ASSERT_TRUE(found_ns);
  EXPECT_GT(*found_ns, Watchdog::kPatience);
}

TEST_F(Watching, ADeviceCallThatHangsIsFoundWithin200Milliseconds) {
  worker_ = 'D';
  ASSERT_FALSE(until(Advice::worker_hangs, kSecond));
  seen_.call_began_ns = seen_.now_ns;
  const auto found_ns = until(Advice::worker_hangs, 10 * kSecond);
  ASSERT_TRUE(found_ns);
  EXPECT_LE(*found_ns, 200 * kMillisecond);
}

TEST_F(Watching, TheFirstCallsMayStartADriver) {
  worker_ = 'D';
  seen_.calls = 0;
  seen_.call_began_ns = seen_.now_ns;
  const auto found_ns = until(Advice::worker_hangs, 10 * kSecond);
  ASSERT_TRUE(found_ns);
  EXPECT_GE(*found_ns, Watchdog::kPatience);
}

/// A GPU that looks at the pulse while its clock is set.
class WatchedGpu final : public device::ForwardingGpu {
 public:
  WatchedGpu(WorkerPulse& pulse, bool by_daemon) : ForwardingGpu(std::make_unique<FakeGpu>()), pulse_(pulse) {
    identity_.by_daemon = by_daemon;
  }
  [[nodiscard]] const device::GpuIdentity& identity() const override { return identity_; }
  device::DeviceStatus lock_clock(Megahertz) override { return look(); }
  device::DeviceStatus unlock_clock() override { return look(); }

 private:
  device::DeviceStatus look() {
    const bool longer = pulse_.call_began_ns > monotonic_ns() + kSecond;
    EXPECT_EQ(longer, identity_.by_daemon);
    return Ok{};
  }
  WorkerPulse& pulse_;
  device::GpuIdentity identity_;
};

TEST(PulsedGpuTest, ADaemonHasMoreTimeToSetAClock) {
  for (const bool by_daemon : {false, true}) {
    WorkerPulse pulse;
    PulsedGpu gpu(std::make_unique<WatchedGpu>(pulse, by_daemon), pulse);
    EXPECT_TRUE(gpu.lock_clock(Megahertz(700)));
    EXPECT_TRUE(gpu.unlock_clock());
    EXPECT_EQ(pulse.calls, 2);
  }
}

TEST_F(Watching, ASuspendedMachineIsNoHungWorker) {
  worker_ = 'S';
  answers_ = false;
  ASSERT_TRUE(until(Advice::wake_worker, kSecond));
  seen_.now_ns += 10 * kSecond;
  EXPECT_EQ(watchdog_.look(seen_), Advice::look_again);
  answers_ = true;
  EXPECT_FALSE(until(Advice::worker_hangs, kSecond));
}

TEST_F(Watching, ATrainingProcessIsSuspendedAfterFiveSeconds) {
  owner_ = 'T';
  ASSERT_FALSE(until(Advice::owner_suspended, 4 * kSecond));
  owner_ = 'R';
  ASSERT_FALSE(until(Advice::owner_suspended, 10 * kSecond));
  owner_ = 'T';
  const auto found_ns = until(Advice::owner_suspended, 10 * kSecond);
  ASSERT_TRUE(found_ns);
  EXPECT_GE(*found_ns, 5 * kSecond - Watchdog::kTick);
}

}  // namespace
}  // namespace perseus::clock_control
