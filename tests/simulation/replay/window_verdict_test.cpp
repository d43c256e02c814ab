// Means over windows of readings against a limit.
#include "simulation/replay/window_verdict.h"

#include <gtest/gtest.h>

namespace perseus::replay {
namespace {

/// 100 W, with `peak_w` from 5 s to 6 s; readings every 0.1 s.
std::vector<EnergyReading> readings_with_a_peak(double peak_w) {
  std::vector<EnergyReading> readings{{50, 7}};
  for (int k = 0; k < 100; ++k) {
    const EnergyReading& last = readings.back();
    readings.push_back({50 + 0.1 * (k + 1), last.energy_j + 0.1 * (k >= 50 && k < 60 ? peak_w : 100)});
  }
  return readings;
}

TEST(WindowVerdict, TheWindowThatHoldsThePeakHasTheGreatestMean) {
  const auto readings = readings_with_a_peak(200);
  const WindowVerdict verdict = judge_windows(readings, {"low", 50, 60, Watts(149.9)}, 2);
  EXPECT_EQ(verdict.windows, 81);
  EXPECT_NEAR(verdict.greatest_w, 150, 1e-9);
  EXPECT_GE(verdict.begins_s, 54 - 1e-6);
  EXPECT_LE(verdict.begins_s, 55 + 1e-6);
  EXPECT_GT(verdict.over, 0);
  EXPECT_NEAR(verdict.mean_w, 110, 1e-9);
  EXPECT_EQ(judge_windows(readings, {"high", 50, 60, Watts(150.1)}, 2).over, 0);
}

TEST(WindowVerdict, OnlyWindowsWithinTheTimeOfTheLimitCount) {
  const auto readings = readings_with_a_peak(1000);
  const WindowVerdict after = judge_windows(readings, {"after", 56, 60, Watts(101)}, 2);
  EXPECT_EQ(after.windows, 21);
  EXPECT_EQ(after.over, 0);
  EXPECT_EQ(judge_windows(readings, {"before", 50, 55, Watts(101)}, 2).over, 0);
  EXPECT_GT(judge_windows(readings, {"around", 50, 55.1, Watts(101)}, 2).over, 0);
}

TEST(WindowVerdict, ATimeShorterThanTheWindowProvesNothing) {
  const auto readings = readings_with_a_peak(100);
  EXPECT_EQ(judge_windows(readings, {"short", 52, 53.9, Watts(1)}, 2).windows, 0);
  EXPECT_EQ(judge_windows({}, {"none", 52, 53.9, Watts(1)}, 2).windows, 0);
  EXPECT_EQ(mean_power_w(readings, 70, 80), 0);
  EXPECT_NEAR(mean_power_w(readings, 51, 53), 100, 1e-9);
}

}  // namespace
}  // namespace perseus::replay
