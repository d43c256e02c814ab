// Corrections by hand: what is followed at once, what later, what never.
#include "planning/site/power_correction.h"

#include <gtest/gtest.h>

#include <limits>

namespace perseus::site {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(PowerCorrection, MoreThanPlannedCountsFromTheFirstReport) {
  PowerCorrection correction;
  EXPECT_TRUE(correction.report(1, Joules(104), Joules(100)));
  EXPECT_DOUBLE_EQ(correction.factor(), 1.042);
  EXPECT_FALSE(correction.report(1, Joules(104.1), Joules(100)));
}

TEST(PowerCorrection, NothingCountsAsLessThanPlanned) {
  PowerCorrection correction;
  EXPECT_TRUE(correction.report(1, Joules(104), Joules(100)));
  for (int k = 0; k < 200; ++k) correction.report(1, Joules(81), Joules(100));
  EXPECT_EQ(correction.factor(), 1);
}

TEST(PowerCorrection, ScatterCountsAsMore) {
  PowerCorrection correction;
  for (int k = 0; k < 100; ++k) correction.report(1, Joules(k % 2 == 0 ? 90 : 110), Joules(100));
  EXPECT_GT(correction.standard_error(), 0.01);
  EXPECT_GT(correction.factor(), 1.02);
}

TEST(PowerCorrection, WhatCannotBeTrueIsIgnored) {
  PowerCorrection correction;
  for (const double measured_j : {0.0, -100.0, kNan, 1000.0, 10.0}) {
    EXPECT_FALSE(correction.report(100, Joules(measured_j), Joules(100))) << measured_j;
  }
  EXPECT_FALSE(correction.report(100, Joules(100), Joules(0)));
  EXPECT_FALSE(correction.report(kNan, Joules(110), Joules(100)));
  EXPECT_EQ(correction.factor(), 1);
}

TEST(MeterCorrection, LowersLimitsAtOnceAndRaisesThemSlowly) {
  MeterCorrection correction;
  EXPECT_TRUE(correction.read(Seconds(10), Watts(1100), Watts(1000)));
  EXPECT_DOUBLE_EQ(correction.factor(Seconds(10)), 1.102);
  EXPECT_FALSE(correction.read(Seconds(20), Watts(1000), Watts(1000)));  // too early
  EXPECT_TRUE(correction.read(Seconds(70), Watts(1000), Watts(1000)));
  EXPECT_DOUBLE_EQ(correction.factor(Seconds(70)), 1.0765);
}

TEST(MeterCorrection, AnAbsurdMeterChangesNothing) {
  MeterCorrection correction;
  for (const double metered_w : {0.0, kNan, 10'000.0, -5.0, std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(correction.read(Seconds(60), Watts(metered_w), Watts(1000))) << metered_w;
  }
  EXPECT_EQ(correction.factor(Seconds(60)), 1);
}

TEST(MeterCorrection, ADeadMeterGivesBackWhatItRaisedAndKeepsWhatItLowered) {
  MeterCorrection raised, lowered;
  for (int minute = 1; minute < 20; ++minute) {
    raised.read(Seconds(60 * minute), Watts(600), Watts(1000));
    lowered.read(Seconds(60 * minute), Watts(1080), Watts(1000));
  }
  EXPECT_LT(raised.factor(Seconds(1200)), 0.97);
  EXPECT_GE(raised.factor(Seconds(1200)), MeterCorrection::kLeastMetered);
  EXPECT_EQ(raised.factor(Seconds(2000)), 1);
  EXPECT_DOUBLE_EQ(lowered.factor(Seconds(2000)), 1.082);
  raised.read(Seconds(2001), Watts(1000), Watts(1000));
  EXPECT_EQ(raised.factor(Seconds(2001)), 1);
}

}  // namespace
}  // namespace perseus::site
