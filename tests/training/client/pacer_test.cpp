// A paced rank: waits at the begin of an iteration, on a turned clock; and what ends a wait.
#include "training/client/pacer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/training/client/scripted_server.h"

namespace perseus::client {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr auto is_idle = [] { return true; };

class PacerTest : public ::testing::Test {
 protected:
  /// The training thread begins an iteration; the last one began `elapsed` ns ago.
  void begins(std::uint64_t elapsed_ns) {
    thread_ = std::thread([this, from = now_ns - elapsed_ns] {
      pacer.wait(from, [this] { return idle.load(); });
      done = true;
    });
  }
  void turn(std::uint64_t by_ns) {
    now_ns += by_ns;
    pacer.set(pacer.period_s());  // looks at the time again
  }
  bool ended() {
    if (!eventually([&] { return done.load(); })) return false;
    thread_.join();
    done = false;
    return !pacer.waits();
  }
  void expect_waits() {
    ASSERT_TRUE(eventually([&] { return pacer.waits(); }));
    EXPECT_FALSE(done);
  }
  ~PacerTest() override {
    if (!thread_.joinable()) return;
    pacer.stop();
    thread_.join();
  }

  std::atomic<std::uint64_t> now_ns{1000 * kSecond};
  std::atomic<bool> done{false}, idle{true};
  Pacer pacer{[this] { return now_ns.load(); }};
  std::thread thread_;
};

TEST_F(PacerTest, WaitsUntilThePeriodHasPassedSinceTheLastBegin) {
  pacer.set(8);
  begins(3 * kSecond);
  expect_waits();
  turn(4 * kSecond);
  expect_waits();
  turn(1 * kSecond);
  EXPECT_TRUE(ended());
  EXPECT_EQ(pacer.paced_s(), 5);
}

TEST_F(PacerTest, WaitsNotAtAllWithoutAPeriodAfterALongIterationOrBeforeTheFirstOne) {
  pacer.wait(now_ns, is_idle);
  pacer.set(8);
  pacer.wait(now_ns - 8 * kSecond, is_idle);
  pacer.wait(0, is_idle);
  EXPECT_EQ(pacer.paced_s(), 0);
}

TEST_F(PacerTest, NoWaitIsLongerThanTheLongest) {
  pacer.set(3600);
  begins(0);
  expect_waits();
  turn(static_cast<std::uint64_t>(kLongestPace_s) * kSecond - 1);
  expect_waits();
  turn(1);
  EXPECT_TRUE(ended());
  EXPECT_EQ(pacer.paced_s(), kLongestPace_s);
}

TEST_F(PacerTest, AWaitEndsWithTheNextPlanAndWithStop) {
  for (const bool stops : {false, true}) {
    pacer.set(9);
    begins(0);
    expect_waits();
    stops ? pacer.stop() : pacer.set(0);
    EXPECT_TRUE(ended());
  }
  pacer.set(9);
  pacer.wait(now_ns, is_idle);
  EXPECT_EQ(pacer.paced_s(), 0) << "after stop() nothing waits";
}

TEST_F(PacerTest, AnEarlierPeriodMovesTheEndOfAWait) {
  pacer.set(9);
  begins(0);
  expect_waits();
  turn(5 * kSecond);
  expect_waits();
  pacer.set(4);
  EXPECT_TRUE(ended());
  EXPECT_EQ(pacer.paced_s(), 5);
}

TEST_F(PacerTest, ALaterPeriodHoldsFromItsTimeOnByItself) {
  pacer.set(0, {{now_ns + 5 * kSecond, 4}, {now_ns + 60 * kSecond, 8}});
  pacer.wait(now_ns, is_idle);
  EXPECT_EQ(pacer.paced_s(), 0) << "it is not due";
  EXPECT_EQ(pacer.period_s(), 0);
  now_ns += 5 * kSecond - 1;
  pacer.wait(now_ns, is_idle);
  EXPECT_EQ(pacer.paced_s(), 0);
  now_ns += 1;
  EXPECT_EQ(pacer.period_s(), 4);
  begins(1 * kSecond);
  expect_waits();
  now_ns += 3 * kSecond;
  pacer.set(0, {{now_ns - 3 * kSecond, 4}});
  EXPECT_TRUE(ended());
  EXPECT_EQ(pacer.paced_s(), 3);
}

TEST_F(PacerTest, OnlyLaterPeriodsThatAreThereMove) {
  pacer.move_later({{now_ns.load(), 4}});
  EXPECT_EQ(pacer.period_s(), 0) << "there is none: the server may have taken it back";
  pacer.set(3, {{now_ns + 5 * kSecond, 4}});
  pacer.move_later({{now_ns + 2 * kSecond, 4}});
  EXPECT_EQ(pacer.period_s(), 3);
  now_ns += 2 * kSecond;
  EXPECT_EQ(pacer.period_s(), 4);
}

TEST_F(PacerTest, ALaterPeriodThatComesDuringAWaitMakesItLonger) {
  const std::vector<LaterPace> later{{now_ns + 3 * kSecond, 9}, {now_ns + 3 * kSecond, 2}};
  const auto turn_by = [&](std::uint64_t seconds) {
    now_ns += seconds * kSecond;
    pacer.set(4, later);
  };
  pacer.set(4, later);
  begins(0);
  expect_waits();
  turn_by(5);
  expect_waits();
  EXPECT_EQ(pacer.period_s(), 9) << "never shorter by time alone";
  turn_by(4);
  EXPECT_TRUE(ended());
  pacer.stop();
  EXPECT_EQ(pacer.period_s(), 0) << "no later one either";
}

TEST_F(PacerTest, WaitsForTheDeviceToo) {
  for (const bool ever_idle : {true, false}) {
    idle = false;
    pacer.set(8);
    begins(9 * kSecond);
    expect_waits();
    turn(static_cast<std::uint64_t>(kLongestPace_s) * kSecond - 1);
    expect_waits();
    ever_idle ? idle.store(true) : turn(1);
    EXPECT_TRUE(ended());
  }
}

/// A rank whose steps end with a collective of all ranks.
struct PacedRank {
  explicit PacedRank(std::atomic<std::uint64_t>& now_ns) : now_ns_(now_ns) {}
  void begin(std::uint64_t begun_ns) {
    done = false;
    thread = std::thread([this, begun_ns] {
      pacer.wait(begun_ns, is_idle);
      done = true;
    });
    EXPECT_TRUE(eventually([&] { return done || pacer.waits(); }));
  }
  /// It decides by the time that it is now.
  void look() {
    const int before = looks;
    pacer.set(period_s);
    EXPECT_TRUE(eventually([&] { return done || looks > before; }));
  }
  std::atomic<std::uint64_t>& now_ns_;
  std::atomic<int> looks{0};
  std::atomic<bool> done{false};
  double period_s = 0;
  Pacer pacer{[this] { return ++looks, now_ns_.load(); }};
  std::thread thread;
};

TEST(PacedCollective, NoStepKeepsARankWaitingForOthersLongerThanTheLongestWait) {
  // Without a period (a client that is not paced, or whose server has ended that), with periods that a step exceeds,
  // that are shorter than the longest wait, and far longer; they change in the midst of a wait, each at its own time.
  const std::vector<std::vector<double>> periods{{0, 0, 3600}, {1, 8, 0}, {8, 3600, 8}, {3600, 3600, 3600}};
  std::atomic<std::uint64_t> now_ns{1000 * kSecond};
  std::vector<std::unique_ptr<PacedRank>> ranks;
  for (std::size_t r = 0; r < periods.size(); ++r) ranks.push_back(std::make_unique<PacedRank>(now_ns));
  std::uint64_t begun_ns = now_ns - 2 * kSecond;
  for (std::size_t step = 0; step < 3; ++step) {
    std::vector<double> before;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ranks[r]->pacer.set(ranks[r]->period_s = periods[r][step]);
      before.push_back(ranks[r]->pacer.paced_s());
      ranks[r]->begin(begun_ns);
    }
    const std::uint64_t met_ns = now_ns;  // the last collective ended, for all
    for (int second = 0; second < static_cast<int>(kLongestPace_s); ++second) {
      now_ns += kSecond;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (second == static_cast<int>(2 * r) && step + 1 < periods[r].size())
          ranks[r]->period_s = periods[r][step + 1];
        ranks[r]->look();
      }
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const bool met = eventually([&] { return ranks[r]->done.load(); });
      EXPECT_TRUE(met) << "step " << step << ", rank " << r;
      if (!met) ranks[r]->pacer.stop();
      ranks[r]->thread.join();
      EXPECT_LE(ranks[r]->pacer.paced_s() - before[r], kLongestPace_s);
    }
    begun_ns = met_ns;
  }
}

TEST_F(PacerTest, ATimeSourceThatGoesBackEndsAWait) {
  pacer.set(9);
  begins(0);
  expect_waits();
  now_ns -= kSecond;
  pacer.set(9);
  EXPECT_TRUE(ended());
  EXPECT_EQ(pacer.paced_s(), 0);
}

}  // namespace
}  // namespace perseus::client
