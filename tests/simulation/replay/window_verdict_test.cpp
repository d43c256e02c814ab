// Means over windows of readings against a limit.
#include "simulation/replay/window_verdict.h"

#include <gtest/gtest.h>

#include <vector>

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
  const WindowVerdict verdict = judge_windows(readings, std::vector<LimitPoint>{{0, 149.9}}, {"low", 50, 60}, 2);
  EXPECT_EQ(verdict.windows, 81);
  EXPECT_NEAR(verdict.power_w, 150, 1e-9);
  EXPECT_GE(verdict.begins_s, 54 - 1e-6);
  EXPECT_LE(verdict.begins_s, 55 + 1e-6);
  EXPECT_GT(verdict.over, 0);
  EXPECT_NEAR(verdict.mean_w, 110, 1e-9);
  EXPECT_EQ(judge_windows(readings, std::vector<LimitPoint>{{0, 150.1}}, {"high", 50, 60}, 2).over, 0);
}

TEST(WindowVerdict, OnlyWindowsWithinTheTimeOfTheLimitCount) {
  const auto readings = readings_with_a_peak(1000);
  const WindowVerdict after = judge_windows(readings, std::vector<LimitPoint>{{0, 101}}, {"after", 56, 60}, 2);
  EXPECT_EQ(after.windows, 21);
  EXPECT_EQ(after.over, 0);
  EXPECT_EQ(judge_windows(readings, std::vector<LimitPoint>{{0, 101}}, {"before", 50, 55}, 2).over, 0);
  EXPECT_GT(judge_windows(readings, std::vector<LimitPoint>{{0, 101}}, {"around", 50, 55.1}, 2).over, 0);
}

TEST(WindowVerdict, ATimeShorterThanTheWindowProvesNothing) {
  const auto readings = readings_with_a_peak(100);
  EXPECT_EQ(judge_windows(readings, std::vector<LimitPoint>{{0, 1}}, {"short", 52, 53.9}, 2).windows, 0);
  EXPECT_EQ(judge_windows({}, std::vector<LimitPoint>{{0, 1}}, {"none", 52, 53.9}, 2).windows, 0);
  EXPECT_EQ(mean_power_w(readings, 70, 80), 0);
  EXPECT_NEAR(mean_power_w(readings, 51, 53), 100, 1e-9);
}

TEST(WindowVerdict, AWindowIsComparedWithTheMeanOfItsLimit) {
  const auto readings = readings_with_a_peak(100);
  const std::vector<LimitPoint> ramp{{50, 200}, {54, 200}, {58, 100}, {59, 100}, {59, 300}};
  EXPECT_EQ(limit_at(ramp, 49), 0);
  EXPECT_NEAR(limit_at(ramp, 57), 125, 1e-9);
  EXPECT_EQ(limit_at(ramp, 59), 300);
  EXPECT_EQ(limit_at(ramp, 70), 300);
  const WindowVerdict falls = judge_windows(readings, ramp, {"the ramp", 50, 58}, 2);
  EXPECT_EQ(falls.windows, 61);
  EXPECT_EQ(falls.over, 0);
  EXPECT_NEAR(falls.begins_s, 56, 1e-6);
  EXPECT_NEAR(falls.limit_w, 125, 1e-9);
  EXPECT_NEAR(judge_windows(readings, ramp, {"rises", 58, 60}, 2).limit_w, 200, 1e-9);
  const auto peak = readings_with_a_peak(163);
  const std::vector<LimitPoint> early{{54, 200}, {56, 100}};
  const WindowVerdict over = judge_windows(peak, early, {"early", 54, 56}, 2);
  EXPECT_EQ(over.windows, 1);
  EXPECT_EQ(over.over, 0);  // 131.5 W in the mean, 150 W allowed
  EXPECT_GT(judge_windows(peak, early, {"later", 54.5, 58}, 2).over, 0);
}

}  // namespace
}  // namespace perseus::replay
