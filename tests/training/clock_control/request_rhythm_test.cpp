// When the helper expects the next request, and how it waits for it, on a hand-turned clock.
#include "training/clock_control/request_rhythm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace perseus::clock_control {
namespace {

constexpr std::int64_t kMs = 1'000'000;

class Rhythm : public ::testing::Test {
 protected:
  /// A step with these gaps after its requests.
  void step(const std::vector<std::int64_t>& gaps_ns) {
    for (std::uint32_t i = 0; i < gaps_ns.size(); ++i) request(i, gaps_ns[i]);
  }
  void request(std::uint32_t number, std::int64_t gap_ns) {
    expected_.requested(number, now_ns_);
    now_ns_ += gap_ns;
  }
  /// Makes request `number` now. Returns the expected time of the next request, relative to it.
  RequestWindow window_after(std::uint32_t number) {
    expected_.requested(number, now_ns_);
    const RequestWindow window = expected_.next();
    if (window.closes_ns == 0) return window;
    return {window.opens_ns - now_ns_, window.due_ns - now_ns_, window.closes_ns - now_ns_, window.trust};
  }

  RequestRhythm expected_;
  std::int64_t now_ns_ = 5'000'000'000;
};

#define EXPECT_AROUND(window, gap_ns)                   \
  do {                                                  \
    const RequestWindow seen = (window);                \
    EXPECT_LT(seen.opens_ns, (gap_ns));                 \
    EXPECT_GT(seen.opens_ns, (gap_ns) - (gap_ns) / 5);  \
    EXPECT_GT(seen.closes_ns, (gap_ns));                \
    EXPECT_LT(seen.closes_ns, (gap_ns) + (gap_ns) / 5); \
  } while (false)

TEST_F(Rhythm, NothingIsExpectedThatWasNotSeenOnce) {
  EXPECT_EQ(expected_.next().closes_ns, 0);
  EXPECT_EQ(window_after(0).closes_ns, 0);
  now_ns_ += 20 * kMs;
  EXPECT_EQ(window_after(1).closes_ns, 0);
}

TEST_F(Rhythm, EachRequestOfAStepHasItsOwnGapAndTheLastOneToo) {
  step({20 * kMs, 40 * kMs, 70 * kMs});
  EXPECT_AROUND(window_after(0), 20 * kMs);
  now_ns_ += 20 * kMs;
  EXPECT_AROUND(window_after(1), 40 * kMs);
  now_ns_ += 40 * kMs;
  EXPECT_AROUND(window_after(2), 70 * kMs);
}

TEST_F(Rhythm, AStepWithOneRequestIsARhythmToo) {
  request(0, 30 * kMs);
  EXPECT_AROUND(window_after(0), 30 * kMs);
}

TEST_F(Rhythm, RegularGapsHaveShortWindows) {
  for (int i = 0; i < 50; ++i) step({20 * kMs, 40 * kMs});
  EXPECT_GT(window_after(0).opens_ns, 20 * kMs - kMs / 5);
}

TEST_F(Rhythm, AHiccupIsNotLearnedFromAndANewRhythmIsAfterThreeSteps) {
  for (int i = 0; i < 10; ++i) step({20 * kMs, 40 * kMs});
  step({500 * kMs, 40 * kMs});
  EXPECT_AROUND(window_after(0), 20 * kMs);
  now_ns_ += 20 * kMs;
  request(1, 40 * kMs);
  for (int i = 0; i < 3; ++i) step({26 * kMs, 40 * kMs});
  EXPECT_AROUND(window_after(0), 26 * kMs);
}

TEST_F(Rhythm, AChangeThatWasSupersededIsAHiccup) {
  for (int i = 0; i < 3; ++i) step({20 * kMs, 40 * kMs, 30 * kMs});
  request(0, 60 * kMs);  // request 1 was never seen
  EXPECT_AROUND(window_after(2), 30 * kMs);
  now_ns_ += 30 * kMs;
  EXPECT_AROUND(window_after(0), 20 * kMs);
}

TEST_F(Rhythm, AnotherSuccessorIsExpectedFromTheTimesSinceTheStepsBegan) {
  for (int i = 0; i < 3; ++i) {
    for (const auto& [number, gap_ms] : {std::pair{0U, 20}, std::pair{1U, 40}, std::pair{2U, 30}, std::pair{5U, 50}}) {
      request(number, gap_ms * kMs);
    }
  }
  expected_.requested(0, now_ns_);
  const auto after = [&](std::uint32_t number) {
    const RequestWindow window = expected_.next(number);
    return RequestWindow{window.opens_ns - now_ns_, window.due_ns - now_ns_, window.closes_ns - now_ns_, window.trust};
  };
  EXPECT_AROUND(after(1), 20 * kMs);
  EXPECT_AROUND(after(2), 60 * kMs);
  EXPECT_AROUND(after(5), 90 * kMs);
  EXPECT_EQ(expected_.next(3).closes_ns, 0) << "never seen";
  EXPECT_EQ(expected_.next(6).closes_ns, 0);
}

TEST_F(Rhythm, StepsOfAnotherLengthDoNotConfuseIt) {
  for (int i = 0; i < 3; ++i) step({20 * kMs, 40 * kMs, 30 * kMs});
  step({20 * kMs, 40 * kMs});
  EXPECT_AROUND(window_after(0), 20 * kMs);
  now_ns_ += 20 * kMs;
  EXPECT_AROUND(window_after(1), 40 * kMs);
  EXPECT_EQ(window_after(4'000'000'000).closes_ns, 0);
}

TEST_F(Rhythm, WithOnePercentOfJitterFewRequestsComeOutsideOfShortWindows) {
  std::mt19937 random(7);
  std::normal_distribution<double> jitter(1, 0.01);
  const std::vector<std::int64_t> means_ns{20 * kMs, 40 * kMs, 100 * kMs, 33 * kMs};
  int outside = 0, all = 0;
  std::int64_t longest_ns = 0;
  for (int i = 0; i < 500; ++i) {
    for (std::uint32_t k = 0; k < 4; ++k) {
      const RequestWindow window = window_after(k);
      const auto gap_ns = static_cast<std::int64_t>(static_cast<double>(means_ns[k]) * jitter(random));
      now_ns_ += gap_ns;
      if (i < 10) continue;
      ++all;
      outside += gap_ns < window.opens_ns || gap_ns > window.closes_ns ? 1 : 0;
      longest_ns = std::max(longest_ns, (means_ns[k] - window.opens_ns) * 100 / means_ns[k]);
    }
  }
  EXPECT_LT(outside, all / 100);
  EXPECT_LE(longest_ns, 10) << "percent of the gap";
}

TEST_F(Rhythm, IrregularGapsAreSeldomExpectedAndNotForLong) {
  std::mt19937 random(7);
  int expected = 0;
  for (int i = 0; i < 500; ++i) {
    const RequestWindow window = window_after(0);
    now_ns_ += static_cast<std::int64_t>(random() % (40 * kMs)) + 1;
    if (window.closes_ns == 0) continue;
    ++expected;
    EXPECT_LT(window.closes_ns - window.opens_ns, window.closes_ns / 4 + kMs / 10);
  }
  EXPECT_LT(expected, 50);
}

TEST_F(Rhythm, RequestsThatBecomeRegularAreExpectedAgain) {
  for (const int ms : {20, 50, 10, 80, 30, 5, 60}) step({ms * kMs, 40 * kMs});
  EXPECT_EQ(window_after(0).closes_ns, 0);
  now_ns_ += 20 * kMs;
  request(1, 40 * kMs);
  for (int i = 0; i < 6; ++i) step({20 * kMs, 40 * kMs});
  EXPECT_AROUND(window_after(0), 20 * kMs);
}

TEST_F(Rhythm, AChangeThatCameDuringASleepMakesTheHelperLookOftenForAWhile) {
  for (int i = 0; i < 40; ++i) step({20 * kMs, 40 * kMs});
  expected_.requested(0, now_ns_);
  ASSERT_EQ(expected_.next().trust, RhythmTrust::calm);
  now_ns_ += 19 * kMs;
  expected_.requested(1, now_ns_, now_ns_ - 19 * kMs);
  EXPECT_EQ(expected_.next().trust, RhythmTrust::confirmed);
  now_ns_ += 40 * kMs;
  for (int i = 0; i < 15; ++i) step({20 * kMs, 40 * kMs});
  EXPECT_EQ(expected_.next().trust, RhythmTrust::confirmed);
  step({20 * kMs, 40 * kMs});
  EXPECT_EQ(expected_.next().trust, RhythmTrust::calm);
}

TEST(Resting, SleepsUntilTheWindowNapsInItAndSleepsAgainAfterIt) {
  const RequestWindow window{100 * kMs, 105 * kMs, 110 * kMs};
  const Rest before = rest_until(window, 40 * kMs, -1);
  EXPECT_EQ(before.how, HelperRest::asleep);
  EXPECT_EQ(before.limit_ns, 60 * kMs);
  for (const std::int64_t now_ns : {100 * kMs - 1000, 100 * kMs, 105 * kMs, 110 * kMs - 1}) {
    const Rest in = rest_until(window, now_ns, -1);
    EXPECT_EQ(in.how, HelperRest::awake) << now_ns;
    EXPECT_GT(in.limit_ns, 0);
    EXPECT_LE(in.limit_ns, 110'000) << "a request reaches the device that late";
  }
  const Rest after = rest_until(window, 110 * kMs, -1);
  EXPECT_EQ(after.how, HelperRest::asleep);
  EXPECT_EQ(after.limit_ns, -1);
}

TEST(Resting, WithNothingExpectedItSleeps) {
  const Rest rest = rest_until({}, 5 * kMs, -1);
  EXPECT_EQ(rest.how, HelperRest::asleep);
  EXPECT_EQ(rest.limit_ns, -1);
}

TEST(Resting, DueClocksWakeTheHelper) {
  const RequestWindow window{100 * kMs, 105 * kMs, 110 * kMs};
  EXPECT_EQ(rest_until(window, 40 * kMs, 3 * kMs).limit_ns, 3 * kMs);
  EXPECT_EQ(rest_until(window, 105 * kMs, 1000).limit_ns, 1000);
  EXPECT_EQ(rest_until(window, 105 * kMs, 0).limit_ns, 0);
  EXPECT_EQ(rest_until(window, 200 * kMs, 3 * kMs).limit_ns, 3 * kMs);
}

TEST(Dozing, SleepsUntilACalmWindowAndLooksOftenInIt) {
  const RequestWindow window{100 * kMs, 101 * kMs, 102 * kMs, RhythmTrust::calm};
  EXPECT_EQ(doze_until(window, 20 * kMs, 20 * kMs, -1).limit_ns, 80 * kMs);
  EXPECT_EQ(doze_until(window, 20 * kMs, 90 * kMs, -1).limit_ns, 10 * kMs);
  for (const std::int64_t now_ns : {100 * kMs, 101 * kMs, 102 * kMs - 1}) {
    EXPECT_LE(doze_until(window, 20 * kMs, now_ns, -1).limit_ns, 110'000) << now_ns;
    EXPECT_GE(doze_until(window, 20 * kMs, now_ns, -1).limit_ns, 80'000) << now_ns;
  }
  EXPECT_EQ(doze_until(window, 20 * kMs, 20 * kMs, 1000).limit_ns, 1000) << "other work is due";
}

TEST(Dozing, LooksLessAndLessOftenAfterAMissedMomentButNeverStops) {
  const RequestWindow window{100 * kMs, 101 * kMs, 102 * kMs, RhythmTrust::calm};
  std::int64_t before_ns = 0;
  for (const std::int64_t late_ms : {1, 4, 8, 16, 32}) {
    const std::int64_t limit_ns = doze_until(window, 20 * kMs, (101 + late_ms) * kMs, -1).limit_ns;
    EXPECT_GT(limit_ns, before_ns);
    EXPECT_LE(limit_ns, late_ms * kMs / 8);
    before_ns = limit_ns;
  }
  EXPECT_LE(doze_until(window, 20 * kMs, 100'000 * kMs, -1).limit_ns, 4 * kMs);
}

TEST(Dozing, SleepsOnlyHalfOfAGapThatIsNotCalm) {
  const RequestWindow window{100 * kMs, 105 * kMs, 110 * kMs, RhythmTrust::confirmed};
  EXPECT_EQ(doze_until(window, 20 * kMs, 20 * kMs, -1).limit_ns, 40 * kMs);
  EXPECT_LE(doze_until(window, 20 * kMs, 60 * kMs, -1).limit_ns, 2 * kMs);
  EXPECT_EQ(doze_until(window, 20 * kMs, 104 * kMs, -1).limit_ns, 80'000);
  const RequestWindow once{100 * kMs, 105 * kMs, 110 * kMs};
  EXPECT_LE(doze_until(once, 20 * kMs, 20 * kMs, -1).limit_ns, 80'000);
  EXPECT_LE(doze_until(once, 20 * kMs, 60 * kMs, -1).limit_ns, kMs);
}

TEST(Dozing, LooksAtAShareOfTheTimeSinceTheLastChangeWhereNothingIsExpected) {
  EXPECT_EQ(doze_until({}, 20 * kMs, 20 * kMs, -1).limit_ns, 80'000);
  EXPECT_EQ(doze_until({}, 20 * kMs, 30 * kMs, -1).limit_ns, 200'000);
  EXPECT_EQ(doze_until({}, 20 * kMs, 70 * kMs, -1).limit_ns, 500'000);
  EXPECT_EQ(doze_until({}, 20 * kMs, 1020 * kMs, -1).limit_ns, 4 * kMs) << "training stalls";
}

/// Looks per change, and the delay until changes are seen, for a helper whose device changes clocks in every step.
struct Looking {
  double per_change = 0;
  std::int64_t median_ns = 0, p99_ns = 0, latest_ns = 0;
};
Looking look_for(const std::vector<std::int64_t>& gaps_ns, double jitter, int learning, int steps) {
  constexpr std::int64_t kWake = 20'000, kWork = 10'000;  // until a nap ends, and for a look with a device call
  std::mt19937 random(7);
  std::normal_distribution<double> factor(1, jitter);
  RequestRhythm rhythm;
  std::int64_t now_ns = 5'000 * kMs, device_ns = now_ns, last_ns = now_ns, looked_ns = now_ns;
  std::vector<std::int64_t> late_ns;
  int looks = 0;
  for (int step = 0; step < learning + steps; ++step) {
    for (std::uint32_t number = 0; number < gaps_ns.size(); ++number) {
      device_ns += static_cast<std::int64_t>(static_cast<double>(gaps_ns[number]) * factor(random));
      for (; now_ns < device_ns; looks += step >= learning ? 1 : 0) {
        looked_ns = now_ns;
        now_ns += doze_until(rhythm.next(number), last_ns, now_ns, -1).limit_ns + kWake;
      }
      rhythm.requested(number, now_ns, looked_ns);
      last_ns = now_ns;
      if (step >= learning) late_ns.push_back(now_ns - device_ns);
      now_ns += kWork;
    }
  }
  std::ranges::sort(late_ns);
  const std::size_t count = late_ns.size();
  return {looks / static_cast<double>(count), late_ns[count / 2], late_ns[count * 99 / 100], late_ns.back()};
}

TEST(Dozing, LooksAFewTimesPerChangeInARegularRhythm) {
  const Looking seen = look_for({20 * kMs, 40 * kMs, 34 * kMs, 18 * kMs}, 0.0005, 8, 100);
  EXPECT_LT(seen.per_change, 6);
  EXPECT_LT(seen.median_ns, 90'000);
  EXPECT_LT(seen.p99_ns, 140'000);
}

TEST(Dozing, LooksNoMoreBetweenChangesThatAreFarApart) {
  // Boundaries between computations of equal clocks are not changes, so only gaps between changes count.
  const Looking near = look_for({20 * kMs, 40 * kMs}, 0, 30, 100), far = look_for({200 * kMs, 400 * kMs}, 0, 30, 100);
  EXPECT_LT(near.per_change, 5);
  EXPECT_LT(far.per_change, near.per_change + 2);
}

TEST(Dozing, LooksMoreOftenTheLessRegularTheRhythmIs) {
  const Looking seen = look_for({20 * kMs, 40 * kMs, 34 * kMs, 18 * kMs}, 0.01, 8, 100);
  EXPECT_LT(seen.per_change, 15);
  EXPECT_LT(seen.median_ns, 100'000);
  EXPECT_LT(seen.p99_ns, 180'000);
}

TEST(Dozing, LearnsWithinAFewSteps) {
  const Looking seen = look_for({20 * kMs, 40 * kMs, 34 * kMs, 18 * kMs}, 0.003, 2, 3);
  EXPECT_LT(seen.per_change, 35);
  EXPECT_LT(seen.latest_ns, 2 * kMs);
}

}  // namespace
}  // namespace perseus::clock_control
