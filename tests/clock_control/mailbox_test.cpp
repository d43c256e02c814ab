// The mailbox between two threads: nothing is lost, nothing old is seen after something newer, nobody sleeps for ever.
#include "clock_control/mailbox.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace perseus {
namespace {

TEST(Requests, KeepClockAndAge) {
  const std::int64_t now = 123'456'789'012'345'678;
  for (const int mhz : {1, 1410, 65535}) {
    const ClockRequest request(mhz, now);
    EXPECT_EQ(request.clock(), Megahertz(mhz));
    EXPECT_EQ(request.age_ns(now + 5), 5);
    EXPECT_EQ(ClockRequest(request.word()), request);
  }
  const std::int64_t wraps = (std::int64_t{1} << 48) - 3;
  EXPECT_EQ(ClockRequest(1, wraps).age_ns(wraps + 10), 10);
}

TEST(SharedTexts, AShorterOneAfterALongerOneIsWhole) {
  SharedText text;
  text.write("the device refuses the clock: no permission");
  text.forget();
  text.write("lost");
  EXPECT_EQ(text.read(), "lost");
  text.forget();
  text.write(std::string(2000, 'x'));
  EXPECT_EQ(text.read(), std::string(511, 'x'));
}

TEST(Histograms, QuantilesAreRightToSixPercent) {
  std::mt19937_64 random(7);
  LatencyHistogram histogram;
  std::vector<double> all;
  EXPECT_EQ(histogram.quantile_s(0.99), 0);
  for (int i = 0; i < 20'000; ++i) {
    const double ns = std::exp(std::uniform_real_distribution<>(0, 23)(random));  // 1 ns to 10 s
    all.push_back(1e-9 * std::floor(ns));
    histogram.record(static_cast<std::int64_t>(ns));
  }
  std::ranges::sort(all);
  EXPECT_EQ(histogram.count(), 20'000);
  for (const double q : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const double truth = all[std::max<std::size_t>(static_cast<std::size_t>(std::ceil(q * 20'000)), 1) - 1];
    EXPECT_NEAR(histogram.quantile_s(q), truth, 0.0625 * truth + 1e-9) << q;
  }
  histogram.record(-5);
  histogram.record(INT64_MAX);
  EXPECT_EQ(histogram.count(), 20'002);
}

TEST(MailboxFile, IsKnownAgainAndNothingElseIs) {
  const int fd = create_mailbox_fd();
  ASSERT_GE(fd, 0);
  EXPECT_NE(::ftruncate(fd, 1), 0) << "sealed";
  Mailbox* mailbox = map_mailbox(fd);
  Mailbox* other = map_mailbox(fd);
  ASSERT_TRUE(mailbox != nullptr && other != nullptr);
  mailbox->post(Megahertz(700), -1);
  EXPECT_EQ(ClockRequest(other->target).clock(), Megahertz(700));
  const_cast<std::uint32_t&>(other->layout) += 1;
  EXPECT_EQ(map_mailbox(fd), nullptr);
  unmap_mailbox(mailbox);
  unmap_mailbox(other);
  ::close(fd);
  EXPECT_EQ(map_mailbox(0), nullptr);
  EXPECT_EQ(map_mailbox(-1), nullptr);
}

TEST(MailboxPost, TheSameClockAgainIsNoRequest) {
  Mailbox mailbox;
  for (const int mhz : {0, 700, 700, 350, 700, -5, 0, 1'000'000}) mailbox.post(Megahertz(mhz), -1);
  EXPECT_EQ(mailbox.requested, 5);
  EXPECT_EQ(ClockRequest(mailbox.target).clock(), Megahertz(65535));
}

TEST(MailboxPost, RequestsAreCountedPerStep) {
  Mailbox mailbox;
  std::vector<std::uint32_t> numbers;
  const auto post = [&](int mhz) {
    mailbox.post(Megahertz(mhz), -1);
    numbers.push_back(mailbox.number);
  };
  for (const int mhz : {700, 350, 350, 700}) post(mhz);
  mailbox.begin_step();
  EXPECT_EQ(mailbox.number, 2U) << "still of the last request, which the helper may not have seen yet";
  for (const int mhz : {700, 350, 700}) post(mhz);
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 1, 2, 2, 0, 1}));
}

TEST(MailboxSleep, NotWithSomethingNewerInIt) {
  Mailbox mailbox;
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::uint64_t count = 0;
  EXPECT_TRUE(mailbox.may_sleep(ClockRequest(mailbox.target)));
  mailbox.post(Megahertz(700), wake);
  EXPECT_EQ(::read(wake, &count, sizeof count), 8) << "it was asleep, so it is woken";
  EXPECT_EQ(mailbox.asleep, 0U);
  const ClockRequest seen(mailbox.target);
  mailbox.post(Megahertz(350), wake);
  EXPECT_EQ(::read(wake, &count, sizeof count), -1) << "it was awake";
  EXPECT_EQ(mailbox.woken, 1);
  EXPECT_FALSE(mailbox.may_sleep(seen));
  EXPECT_EQ(mailbox.asleep, 0U);
  EXPECT_TRUE(mailbox.may_sleep(ClockRequest(mailbox.target)));
  ::close(wake);
}

/// Sleeps whenever the mailbox allows it, every third time only for a nap from which nobody wakes it; ends when it has
/// seen `last`, or when nobody has woken it for long.
class Sleeper {
 public:
  explicit Sleeper(int last) : thread_([this, last] { run(last); }) {}
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { ::close(wake); }
  void join() { thread_.join(); }

  Mailbox mailbox;
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::atomic<int> seen{0};
  std::atomic<bool> in_order{true}, overslept{false};

 private:
  void run(int last) {
    for (int round = 0;; ++round) {
      const ClockRequest request(mailbox.target.load());
      if (request.clock().value() < seen) in_order = false;
      seen = request.clock().value();
      if (seen == last) return;
      if (round % 3 == 0) {
        (void)::poll(nullptr, 0, 0);
        continue;
      }
      if (!mailbox.may_sleep(request)) continue;
      pollfd waiting{wake, POLLIN, 0};
      // Whoever posts after may_sleep() wakes us.
      overslept = ::poll(&waiting, 1, 20'000) == 0;
      if (overslept) return;
      mailbox.asleep.store(0);
      std::uint64_t count = 0;
      (void)!::read(wake, &count, sizeof count);
    }
  }
  std::thread thread_;
};

TEST(MailboxThreads, NothingOldComesAfterSomethingNew) {
  constexpr int kLast = 60'000;
  Sleeper sleeper(kLast);
  for (int mhz = 1; mhz <= kLast; ++mhz) {
    sleeper.mailbox.post(Megahertz(mhz), sleeper.wake);
    if (mhz % 100 == 0) std::this_thread::yield();
  }
  sleeper.join();
  EXPECT_EQ(sleeper.seen, kLast);
  EXPECT_TRUE(sleeper.in_order);
}

TEST(MailboxThreads, NoWakeUpIsLost) {
  constexpr int kLast = 4'000;
  Sleeper sleeper(kLast);
  for (int mhz = 1; mhz <= kLast && !sleeper.overslept; ++mhz) {
    // Just as it has seen the last one and goes to sleep.
    sleeper.mailbox.post(Megahertz(mhz), sleeper.wake);
    while (sleeper.seen != mhz && !sleeper.overslept) {}
  }
  sleeper.join();
  EXPECT_FALSE(sleeper.overslept) << "at " << sleeper.seen;
}

}  // namespace
}  // namespace perseus
