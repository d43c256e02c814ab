#include "server/jobs/iteration_energy_meter.h"

#include <gtest/gtest.h>

#include <cmath>

namespace perseus::jobs {
namespace {

TEST(EnergyMeter, SumsRanksOnceAllHaveReportedAndAgainAfterTwiceAsMany) {
  IterationEnergyMeter meter;
  meter.report(7, 4, 0, {Joules(10), Joules(20)}, {Seconds(1), Seconds(1)});
  EXPECT_FALSE(meter.take(7, 4, 2)) << "rank 1 has not reported";
  meter.report(7, 4, 1, {Joules(30)}, {Seconds(2)});
  const auto first = meter.take(7, 4, 2);
  ASSERT_TRUE(first);
  EXPECT_EQ(*first, (EnergyMeasured{7, 1, 45, 2, 4, 2}));
  EXPECT_FALSE(meter.take(7, 4, 2)) << "nothing new";
  meter.report(7, 4, 1, {Joules(30)}, {Seconds(2)});
  EXPECT_FALSE(meter.take(7, 4, 2)) << "not all ranks can have reported again";
  meter.report(7, 4, 0, {Joules(15)}, {Seconds(1)});
  EXPECT_EQ(meter.take(7, 4, 2)->iterations, 2);
}

TEST(EnergyMeter, OneOddIterationChangesNothing) {
  IterationEnergyMeter meter;
  meter.report(7, 4, 0, {Joules(10), Joules(11), Joules(90)}, {Seconds(1), Seconds(1.1), Seconds(9)});
  EXPECT_EQ(*meter.take(7, 4, 1), (EnergyMeasured{7, 3, 10.5, 1.05, 4, 1}));
}

TEST(EnergyMeter, EnergiesThatIterationsTakeFromEachOtherCancel) {
  IterationEnergyMeter meter;
  // As measured: short iterations just after the client has started, each of 43.4 J.
  const std::vector<Joules> measured{Joules(47.67), Joules(43.38), Joules(43.60), Joules(38.57)};
  meter.report(0, 4, 0, measured, std::vector(4, Seconds(0.15)));
  EXPECT_NEAR(meter.take(0, 4, 1)->energy_j, 43.4, 0.003 * 43.4);
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
}  // namespace perseus::jobs
