#include "server/savings/iteration_energy_meter.h"

#include <gtest/gtest.h>

#include <cmath>

namespace perseus::savings {
namespace {

TEST(EnergyMeter, SumsRanksOnceAllHaveReportedThenAtThreeAndAgainAfterTwiceAsMany) {
  IterationEnergyMeter meter;
  meter.report(7, 4, 0, {Joules(10), Joules(20)}, {Seconds(1), Seconds(1)});
  EXPECT_FALSE(meter.take(7, 4, 2)) << "rank 1 has not reported";
  meter.report(7, 4, 1, {Joules(30)}, {Seconds(2)});
  const auto first = meter.take(7, 4, 2);
  ASSERT_TRUE(first);
  EXPECT_EQ(*first, (jobs::EnergyMeasured{7, 1, 45, 2, 4, 2, 0, first->stddev_j}));
  EXPECT_FALSE(meter.take(7, 4, 2)) << "nothing new";
  const auto next = [&](int rank) {
    meter.report(7, 4, rank, {Joules(30)}, {Seconds(2)});
    return meter.take(7, 4, 2);
  };
  EXPECT_FALSE(next(1));
  EXPECT_FALSE(next(1)) << "rank 0 has reported two";
  EXPECT_EQ(next(0)->iterations, 3) << "at once, whichever rank was the last";
  for (const int rank : {0, 0, 0, 1, 1}) EXPECT_FALSE(next(rank));
  EXPECT_EQ(next(1)->iterations, 6);
}

TEST(EnergyMeter, FewUsualIterationsTellNothing) {
  IterationEnergyMeter meter;
  meter.report(7, 4, 0, std::vector(4, Joules(10)), {Seconds(1), Seconds(1), Seconds(2), Seconds(3)});
  EXPECT_GE(meter.take(7, 4, 1)->stddev_j, 10);
}

TEST(EnergyMeter, OneOddIterationChangesNothing) {
  IterationEnergyMeter meter;
  meter.report(7, 4, 0, {Joules(10), Joules(11), Joules(90)}, {Seconds(1), Seconds(1.1), Seconds(9)});
  const auto measured = meter.take(7, 4, 1);
  EXPECT_EQ(measured->energy_j, 10.5);
  EXPECT_EQ(measured->time_s, 1.05);
}

TEST(EnergyMeter, EnergiesThatIterationsTakeFromEachOtherCancel) {
  IterationEnergyMeter meter;
  // As measured: short iterations just after the client has started, each of 43.4 J.
  const std::vector<Joules> measured{Joules(47.67), Joules(43.38), Joules(43.60), Joules(38.57)};
  meter.report(0, 4, 0, measured, std::vector(4, Seconds(0.15)));
  EXPECT_NEAR(meter.take(0, 4, 1)->energy_j, 43.4, 0.003 * 43.4);
}

TEST(EnergyMeter, WhatIterationsTakeFromEachOtherLeavesTheMeanKnown) {
  IterationEnergyMeter meter;
  std::vector<Joules> by_turns, in_pairs;
  for (int i = 0; i < 64; ++i) {
    by_turns.emplace_back(i % 2 == 0 ? 42 : 44);
    in_pairs.emplace_back(i / 2 % 2 == 0 ? 42 : 44);
  }
  const std::vector times(64, Seconds(0.15));
  meter.report(1, 4, 0, by_turns, times);
  meter.report(2, 4, 0, in_pairs, times);
  EXPECT_LT(meter.take(1, 4, 1)->stddev_j, 1.1 / 64);
  EXPECT_GT(meter.take(2, 4, 1)->stddev_j, 3.0 / 64);
}

TEST(EnergyMeter, IgnoresInvalidEnergiesAndForgetsReplacedPlans) {
  IterationEnergyMeter meter;
  meter.report(7, 4, 0, {Joules(-1), Joules(0), Joules(NAN)}, {Seconds(1), Seconds(1), Seconds(1)});
  EXPECT_FALSE(meter.take(7, 4, 1));
  meter.report(0, 4, 0, {Joules(5)}, {Seconds(1)});
  meter.report(7, 4, 0, {Joules(5)}, {Seconds(1)});
  meter.forget_before(8);
  EXPECT_FALSE(meter.take(7, 4, 1));
  EXPECT_TRUE(meter.take(0, 4, 1)) << "the highest clock stays";
}

}  // namespace
}  // namespace perseus::savings
