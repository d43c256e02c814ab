// From recorded steps and a counter to measured iterations, against the simulated truth, on a hand-turned clock.
#include "client/iteration_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/client/hand_turned_rank.h"

namespace perseus::client {
namespace {

constexpr int unknown_error = 999;  // NVML's
const std::string read_counter = "nvmlDeviceGetTotalEnergyConsumption";

void iterate(HandTurnedRank& rank) {
  rank.begin_step();
  for (int i = 0; i < 2; ++i) rank.compute(Instruction::forward);
  for (int i = 0; i < 2; ++i) rank.compute(Instruction::backward);
  rank.end_step();
}

TEST(IterationMeter, EnergiesComeWithinHalfASecondForEveryCounter) {
  for (const double refresh_s : {0.01, 0.02, 0.05, 0.1}) {
    HandTurnedRank rank(two_computations(0.005, refresh_s));
    const double began_s = rank.now_s;
    while (rank.meter->facts().last_iteration_j < 0 && rank.now_s < began_s + 10) iterate(rank);
    EXPECT_LT(rank.now_s - began_s, 0.5) << refresh_s;
    for (int i = 0; i < 200; ++i) iterate(rank);
    const double truth_j = 2 * 0.005 * 300 + 2 * 0.01 * 340;
    ASSERT_GT(rank.measured.size(), 100U);
    EXPECT_NEAR(rank.measured.back().energy_j, truth_j, 0.02 * truth_j) << refresh_s;
  }
}

TEST(IterationMeter, ACounterThatFailsForAWhileIsSaidOnceAndIsBackWithinASecond) {
  HandTurnedRank rank(two_computations(0.005, 0.02));
  for (int i = 0; i < 100; ++i) iterate(rank);
  const double before_j = rank.meter->facts().last_iteration_j;
  ASSERT_GT(before_j, 0);
  for (const double fails_for_s : {0.1, 1.0, 10.0}) {
    rank.gpu->inject(read_counter, unknown_error, -1);
    for (const double until_s = rank.now_s + fails_for_s; rank.now_s < until_s;) iterate(rank);
    EXPECT_EQ(rank.said.count("energy is not measured"), 1);
    ASSERT_EQ(rank.complaints.all().size(), 1U);
    EXPECT_EQ(rank.complaints.all()[0].cause, Cause::energy);

    rank.gpu->inject(read_counter, 0, 0);
    const double back_s = rank.now_s;
    while (rank.complaints.raised(Cause::energy) && rank.now_s < back_s + 20) iterate(rank);
    EXPECT_LT(rank.now_s - back_s, std::min(fails_for_s, 5.0) + 0.1) << fails_for_s;  // it backs off to 5 s
    EXPECT_EQ(rank.said.count("energy is measured again"), 1);
    const double noticed_s = rank.now_s;
    rank.measured.clear();
    const auto right = [&] {
      return !rank.measured.empty() && std::abs(rank.measured.back().energy_j - before_j) < 0.02 * before_j;
    };
    while (!right() && rank.now_s < noticed_s + 20) iterate(rank);
    EXPECT_LT(rank.now_s - noticed_s, 1) << fails_for_s;
    rank.said.forget();
  }
}

}  // namespace
}  // namespace perseus::client
