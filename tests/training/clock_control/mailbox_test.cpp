// The mailbox between two threads: it loses no request, never delivers an older request after a newer one, and wakes
// every sleeper.
#include "training/clock_control/mailbox.h"

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

namespace perseus::clock_control {
namespace {

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
  mailbox->post_now(Megahertz(700), -1);
  EXPECT_EQ(other->queue.take_due()->change.clock_mhz, 700);
  const_cast<std::uint32_t&>(other->layout) += 1;
  EXPECT_EQ(map_mailbox(fd), nullptr);
  unmap_mailbox(mailbox);
  unmap_mailbox(other);
  ::close(fd);
  EXPECT_EQ(map_mailbox(0), nullptr);
  EXPECT_EQ(map_mailbox(-1), nullptr);
}

/// Clocks due now, oldest first, for a helper that looks after every post.
int take(Mailbox& mailbox) {
  const auto due = mailbox.queue.take_due();
  return due ? due->change.clock_mhz : -1;
}

TEST(MailboxPost, TheSameClockAgainIsNoChange) {
  Mailbox mailbox;
  for (const int mhz : {0, 700, 700, 350, 700, -5, 0, 1'000'000}) mailbox.post_now(Megahertz(mhz), -1);
  EXPECT_EQ(mailbox.queue.posted(), 6U);
  EXPECT_EQ(take(mailbox), 65535);
}

TEST(MailboxPost, ChangesAreNumberedPerStep) {
  Mailbox mailbox;
  std::vector<std::uint32_t> numbers;
  const auto post = [&](int mhz) {
    mailbox.post_now(Megahertz(mhz), -1);
    if (const auto due = mailbox.queue.take_due()) numbers.push_back(due->number);
  };
  for (const int mhz : {700, 350, 350, 700}) post(mhz);
  mailbox.begin_step();
  for (const int mhz : {350, 700, 350}) post(mhz);
  EXPECT_EQ(numbers, (std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2}));
}

TEST(ClockQueueTest, AChangeIsDueWhenTheDeviceIsThere) {
  Mailbox mailbox;
  mailbox.post(Megahertz(700), 1, -1);
  mailbox.post(Megahertz(350), 2, -1);
  mailbox.post(Megahertz(900), 5, -1);
  EXPECT_EQ(take(mailbox), -1);
  EXPECT_TRUE(mailbox.queue.waits_for_device());
  mailbox.queue.position() = 1;
  EXPECT_TRUE(mailbox.queue.has_due());
  EXPECT_EQ(take(mailbox), 700);
  EXPECT_EQ(take(mailbox), -1) << "once";
  mailbox.queue.position() = 5;
  EXPECT_EQ(take(mailbox), 900) << "350 was superseded before it was read";
  EXPECT_FALSE(mailbox.queue.waits_for_device());
}

TEST(ClockQueueTest, ALaterDecisionForTheSameBoundaryReplacesTheEarlierOne) {
  Mailbox mailbox;
  mailbox.post(Megahertz(700), 3, -1);
  mailbox.post(Megahertz(350), 3, -1);
  mailbox.queue.position() = 3;
  EXPECT_EQ(take(mailbox), 350);
}

TEST(ClockQueueTest, PositionsWrap) {
  Mailbox mailbox;
  mailbox.queue.position() = 0xffff'fffe;
  mailbox.post(Megahertz(700), 0xffff'ffff, -1);
  mailbox.post(Megahertz(350), 1, -1);
  EXPECT_EQ(take(mailbox), -1);
  mailbox.queue.position() = 0xffff'ffff;
  EXPECT_EQ(take(mailbox), 700);
  mailbox.queue.position() = 0;
  EXPECT_EQ(take(mailbox), -1);
  mailbox.queue.position() = 1;
  EXPECT_EQ(take(mailbox), 350);
}

TEST(ClockQueueTest, NowReplacesAllThatWaits) {
  Mailbox mailbox;
  mailbox.post(Megahertz(700), 1, -1);
  mailbox.post_now(Megahertz(1400), -1);
  EXPECT_EQ(take(mailbox), 1400);
  mailbox.queue.position() = 1;
  EXPECT_EQ(take(mailbox), -1);
  mailbox.post(Megahertz(700), 2, -1);
  mailbox.post_now(Megahertz(700), -1);
  EXPECT_EQ(take(mailbox), 700) << "the newest clock again, but at once";
}

TEST(ClockQueueTest, AFullQueueIsNeverSlowerThanPlanned) {
  Mailbox mailbox;
  const auto capacity = static_cast<std::uint32_t>(ClockQueue::kCapacity);
  for (std::uint32_t i = 1; i <= capacity + 100; ++i) mailbox.post(Megahertz(i % 2 == 0 ? 700 : 350), i, -1);
  EXPECT_EQ(mailbox.queue.posted(), capacity - 1);
  EXPECT_EQ(mailbox.queue.merged(), 101);
  for (std::uint32_t i = 1; i < capacity - 1; ++i) {
    mailbox.queue.position() = i;
    ASSERT_EQ(take(mailbox), i % 2 == 0 ? 700 : 350) << i;
  }
  mailbox.queue.position() = capacity - 1;
  EXPECT_EQ(take(mailbox), 700);
  mailbox.post(Megahertz(900), capacity + 200, -1);
  mailbox.queue.position() = capacity + 200;
  EXPECT_EQ(take(mailbox), 900) << "there is room again";
}

TEST(ClockQueueTest, ALaterHelperFindsTheRequestsTakenBefore) {
  Mailbox mailbox;
  EXPECT_FALSE(mailbox.queue.last_taken());
  mailbox.post(Megahertz(700), 1, -1);
  mailbox.queue.position() = 1;
  (void)take(mailbox);
  for (std::uint32_t i = 2; i < 2 * ClockQueue::kCapacity; ++i) mailbox.post(Megahertz(static_cast<int>(i)), i, -1);
  ASSERT_TRUE(mailbox.queue.last_taken());
  EXPECT_EQ(mailbox.queue.last_taken()->change.clock_mhz, 700) << "also while the queue is full";
}

TEST(AppliedClocksTest, AReaderThatIsLateLosesTheOldest) {
  AppliedClocks log;
  std::uint64_t read = 0;
  std::vector<int> seen;
  const auto note = [&](const AppliedClock& applied) { seen.push_back(applied.clock_mhz); };
  for (int i = 0; i < 3; ++i) log.write({100 + i, 700 + i, static_cast<std::uint32_t>(i), i == 1});
  EXPECT_EQ(log.read_from(read, note), 0U);
  EXPECT_EQ(seen, (std::vector<int>{700, 701, 702}));
  seen.clear();
  for (int i = 0; i < 5000; ++i) log.write({i, i, 0, true});
  EXPECT_EQ(log.read_from(read, note), 5000 - AppliedClocks::kCapacity / 2);
  EXPECT_EQ(seen.size(), AppliedClocks::kCapacity / 2);
  EXPECT_EQ(seen.back(), 4999);
}

class MailboxRest : public ::testing::Test {
 protected:
  ~MailboxRest() override { ::close(wake_); }
  bool woken() const {
    std::uint64_t count = 0;
    return ::read(wake_, &count, sizeof count) == sizeof count;
  }
  bool may_rest(HelperRest how) { return mailbox_.may_rest(how, mailbox_.queue.posted(), mailbox_.limit.changes()); }

  Mailbox mailbox_;
  const int wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

TEST_F(MailboxRest, AnyChangeWakesASleepingHelper) {
  EXPECT_TRUE(may_rest(HelperRest::asleep));
  mailbox_.post(Megahertz(700), 1, wake_);
  EXPECT_TRUE(woken());
  EXPECT_EQ(mailbox_.rest, HelperRest::awake);
  mailbox_.post(Megahertz(350), 2, wake_);
  EXPECT_FALSE(woken()) << "it was awake";
  EXPECT_EQ(mailbox_.woken, 1);
}

TEST_F(MailboxRest, NoneWithSomethingNewerInTheMailbox) {
  const std::uint64_t seen = mailbox_.queue.posted();
  mailbox_.post(Megahertz(700), 1, wake_);
  EXPECT_FALSE(mailbox_.may_rest(HelperRest::asleep, seen, mailbox_.limit.changes()));
  EXPECT_EQ(mailbox_.rest, HelperRest::awake);
}

TEST_F(MailboxRest, OneThatDozesIsWokenOnlyForNow) {
  mailbox_.post(Megahertz(700), 1, wake_);
  EXPECT_TRUE(may_rest(HelperRest::dozing));
  mailbox_.post(Megahertz(350), 2, wake_);
  EXPECT_FALSE(woken());
  mailbox_.post_now(Megahertz(1400), wake_);
  EXPECT_TRUE(woken());
}

TEST_F(MailboxRest, OneThatDozesIsWokenByAPositionThatACpuReports) {
  mailbox_.post(Megahertz(700), 2, wake_);
  EXPECT_TRUE(may_rest(HelperRest::dozing));
  mailbox_.reached(1, wake_);
  EXPECT_FALSE(woken()) << "nothing is due";
  mailbox_.reached(2, wake_);
  EXPECT_TRUE(woken());
  EXPECT_FALSE(may_rest(HelperRest::dozing)) << "700 is due";
  (void)mailbox_.queue.take_due();
  mailbox_.reached(1, wake_);
  EXPECT_EQ(mailbox_.queue.position(), 2U) << "a late report does not take it back";
}

TEST_F(MailboxRest, AnswersAreOwedFromDueToDone) {
  EXPECT_FALSE(mailbox_.owes_answer());
  mailbox_.post(Megahertz(700), 1, wake_);
  EXPECT_FALSE(mailbox_.owes_answer());
  mailbox_.queue.position() = 1;
  EXPECT_TRUE(mailbox_.owes_answer());
  const auto taken = mailbox_.queue.take_due();
  EXPECT_TRUE(mailbox_.owes_answer());
  mailbox_.handled = taken->index;
  EXPECT_FALSE(mailbox_.owes_answer());
}

/// Sleeps whenever the mailbox allows it, every third time only for a nap without wake-up. Ends when it has seen
/// `last`, or after a long time without a wake-up.
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
      const std::uint64_t posted = mailbox.queue.posted();
      if (const auto due = mailbox.queue.take_due()) {
        if (due->change.clock_mhz < seen) in_order = false;
        seen = due->change.clock_mhz;
      }
      if (seen == last) return;
      if (round % 3 == 0) {
        (void)::poll(nullptr, 0, 0);
        continue;
      }
      if (!mailbox.may_rest(HelperRest::asleep, posted, mailbox.limit.changes())) continue;
      pollfd waiting{wake, POLLIN, 0};
      // A post after may_rest() wakes this thread.
      overslept = ::poll(&waiting, 1, 20'000) == 0;
      if (overslept) return;
      mailbox.rest.store(HelperRest::awake);
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
    sleeper.mailbox.post_now(Megahertz(mhz), sleeper.wake);
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
    // Posts when the reader has seen the last request and goes to sleep.
    sleeper.mailbox.post_now(Megahertz(mhz), sleeper.wake);
    while (sleeper.seen != mhz && !sleeper.overslept) {}
  }
  sleeper.join();
  EXPECT_FALSE(sleeper.overslept) << "at " << sleeper.seen;
}

}  // namespace
}  // namespace perseus::clock_control
