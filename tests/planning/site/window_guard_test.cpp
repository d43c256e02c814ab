// The guard of a window by hand.
#include "planning/site/window_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/model/site.h"

namespace perseus::site {
namespace {

/// 3 s at 100 W, then 1 s at 20 W: 80 W on average, 20 W above it and 60 W below.
const std::vector<PowerStep> kWithPause{{Seconds(0), Watts(100)}, {Seconds(3), Watts(20)}};

TEST(WindowGuard, WithoutAveragingTheSwingIsThatOfThePower) {
  const WindowSwing swing = window_swing(kWithPause, Seconds(4), Seconds(0));
  EXPECT_EQ(swing.above, Watts(20));
  EXPECT_DOUBLE_EQ(swing.variance_w2, 0.75 * 400 + 0.25 * 3600);
}

TEST(WindowGuard, ALongWindowSeesAtMostOnePeriodsEnergyAboveTheMean) {
  const WindowSwing swing = window_swing(kWithPause, Seconds(4), Seconds(60));
  EXPECT_DOUBLE_EQ(swing.above.value(), 1.0);  // 3 s of 20 W
  // The energy above the mean rises to 60 J and falls again: uniform in between.
  EXPECT_DOUBLE_EQ(swing.variance_w2, 4 * (60.0 * 60 / 12) / 3600);
}

TEST(WindowGuard, FewJobsNeedNoMoreThanTheSumOfTheirSwings) {
  SwingSum sum;
  const WindowSwing swing = window_swing(kWithPause, Seconds(4), Seconds(0));
  sum.add(swing);
  sum.add(3 * swing);
  EXPECT_DOUBLE_EQ(window_guard(sum).value(), 80);
  for (int k = 0; k < 10'000; ++k) sum.add(swing);
  EXPECT_LT(window_guard(sum), 0.15 * sum.above);
  EXPECT_EQ(window_guard(SwingSum{}), Watts(0));
}

TEST(WindowGuard, SettlesWhereTheChoiceAndItsGuardKeepTheLimit) {
  // Choices of 10 W, whose guard is a tenth of them; another domain has no limit.
  const std::vector<Watts> limits{Watts(1000), model::kNoLimit};
  GuardedLoad last;
  const std::vector<Watts> guards = settle_guards(limits, [&](std::span<const Watts> left) {
    EXPECT_EQ(left[1], model::kNoLimit);
    const double used = 10 * static_cast<int>(left[0].value() / 10);
    last = {{Watts(used), Watts(used)}, {Watts(used / 10), Watts(used / 10)}};
    return last;
  });
  EXPECT_LE(last.used[0] + last.guard[0], limits[0]);
  EXPECT_EQ(last.used[0], Watts(900));
  EXPECT_EQ(guards[0], Watts(100));
  EXPECT_EQ(guards[1], Watts(0));
}

}  // namespace
}  // namespace perseus::site
