// Calibration finds again what synthetic traces were made with: exactly without noise, within error bars with noise.
#include "calibration/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/synthetic_trace.h"

namespace perseus {
namespace {

using testing::all_plans;
using ::testing::HasSubstr;
using testing::SeededDice;
using testing::synthetic_trace;
using testing::TrueRun;

Calibration calibrated(const RunTrace& trace, const CalibrationOptions& options = {}) {
  auto calibration = calibrate(trace, all_plans(trace), options);
  EXPECT_TRUE(calibration) << calibration.error().message;
  return *std::move(calibration);
}

void expect_found(const Calibration& found, const TrueRun& truth, const RunTrace& trace) {
  EXPECT_EQ(found.blocking_transfers, truth.blocking_transfers);
  EXPECT_NEAR(found.transfer_latency.value.value(), truth.transfer_latency.value(), 1e-6);
  EXPECT_NEAR(found.tail.value.value(), truth.tail.value(), 1e-5);
  ASSERT_EQ(found.loading.size(), 2U);
  for (const StageLoading& loading : found.loading)
    EXPECT_NEAR(loading.per_microbatch.value.value(), truth.loading.value(), 1e-5);
  EXPECT_NEAR(found.power.blocking().value.value(), truth.blocking_power.value(), 1e-2);
  EXPECT_NEAR(found.time_correction, 1, 1e-6);
  const std::vector<int> plans = all_plans(trace);
  const Profile profile = make_profile(found, trace, {plans, Megahertz(0)});
  EXPECT_TRUE(profile.validate());
  for (const ProfileEntry& entry : profile.entries) {
    const Instruction instruction = *instruction_named(entry.instruction);
    if (is_constant_time(instruction)) continue;
    for (const Measurement& m : entry.measurements) {
      const Seconds time = truth.time(entry.stage, instruction, m.clock);
      EXPECT_NEAR(m.time / time, 1, 1e-6);
      EXPECT_NEAR(m.energy / (truth.power(entry.stage, m.clock) * time), 1, 1e-4);
    }
  }
}

TEST(Calibrate, FindsWhatExactTracesWereMadeWith) {
  const TrueRun truth;
  SeededDice dice(1);
  const RunTrace trace = synthetic_trace(truth, dice);
  expect_found(calibrated(trace), truth, trace);
}

TEST(Calibrate, TellsTransfersThatTheSenderWaitsForFromOthers) {
  TrueRun truth;
  truth.blocking_transfers = false;
  truth.transfer_latency = Seconds(0.011);
  SeededDice dice(2);
  const RunTrace trace = synthetic_trace(truth, dice);
  expect_found(calibrated(trace), truth, trace);
}

TEST(Calibrate, IsNotMisledByTheFirstMicrobatchesBeingFaster) {
  TrueRun truth;
  truth.first_backward_factor = 0.95;
  SeededDice dice(3);
  const RunTrace trace = synthetic_trace(truth, dice);
  const Calibration found = calibrated(trace);
  const double average = std::pow(truth.first_backward_factor, 1.0 / truth.microbatches);  // of all microbatches
  for (const Megahertz clock : testing::synthetic_clocks()) {
    const Seconds time = found.times.at(1, Instruction::backward, clock);
    EXPECT_NEAR(time / truth.time(1, Instruction::backward, clock), average, 1e-6) << clock.value();
  }
}

TEST(Calibrate, ErrorBarsCoverTheTruth) {
  // Twenty noisy traces: each number is a standard deviation off on average, three at most now and then.
  double squares[3] = {}, worst = 0;
  constexpr int runs = 20;
  for (int run = 0; run < runs; ++run) {
    TrueRun truth;
    truth.plans = 24;
    truth.microbatches = 16;
    truth.tail = Seconds(0);
    truth.time_noise = 1e-3;
    truth.iteration_noise = 2e-3;
    SeededDice dice(100 + run);
    const Calibration found = calibrated(synthetic_trace(truth, dice));
    const Fitted<Watts> power = found.power.at(1, Megahertz(1100));
    const double off[] = {
        (found.transfer_latency.value - truth.transfer_latency) / found.transfer_latency.stddev,
        (found.power.blocking().value - truth.blocking_power) / found.power.blocking().stddev,
        (power.value - truth.power(1, Megahertz(1100))) / power.stddev,
    };
    for (int k = 0; k < 3; ++k) {
      squares[k] += off[k] * off[k] / runs;
      worst = std::max(worst, std::abs(off[k]));
    }
  }
  for (const double mean_square : squares) {
    EXPECT_LT(std::sqrt(mean_square), 1.6);
    EXPECT_GT(std::sqrt(mean_square), 0.2);
  }
  EXPECT_LT(worst, 4);
}

TEST(Calibrate, PredictsExactPlansThatItNeverSaw) {
  TrueRun truth;
  truth.plans = 40;  // so that every clock of every computation is among those learnt from
  SeededDice dice(4);
  const RunTrace trace = synthetic_trace(truth, dice);
  const auto predictions = cross_validate(trace, 5);
  ASSERT_TRUE(predictions) << predictions.error().message;
  ASSERT_EQ(predictions->size(), 40U);
  for (std::size_t p = 0; p < predictions->size(); ++p) EXPECT_EQ((*predictions)[p].plan, static_cast<int>(p));
  const PredictionErrors errors = errors_of(*predictions);
  EXPECT_LT(errors.time_max, 1e-3);
  EXPECT_LT(errors.replay_mean, 1e-4);
  EXPECT_LT(errors.energy_max, 2e-3);
}

TEST(Calibrate, TakesABlockingPowerThatIsKnown) {
  SeededDice dice(5);
  const RunTrace trace = synthetic_trace({}, dice);
  CalibrationOptions options;
  options.power.blocking_power = Watts(65);
  const Calibration found = calibrated(trace, options);
  EXPECT_EQ(found.power.blocking().value, Watts(65));
  EXPECT_EQ(found.power.blocking().stddev, Watts(0));
}

TEST(Calibrate, FillsInClocksOnRequest) {
  SeededDice dice(6);
  const RunTrace trace = synthetic_trace({}, dice);
  const Calibration found = calibrated(trace);
  const std::vector<int> plans = all_plans(trace);
  const Profile grid = make_profile(found, trace, {plans, Megahertz(15)});
  ASSERT_TRUE(grid.validate());
  const ProfileEntry& entry = *grid.find(1, "forward");
  EXPECT_EQ(entry.measurements.size(), (1410 - 810) / 15 + 1U);
  for (const Measurement& m : entry.measurements)
    EXPECT_NEAR(m.time / TrueRun{}.time(1, Instruction::forward, m.clock), 1, 1e-6);
}

TEST(Calibrate, RefusesWhatItCannotLearnFrom) {
  SeededDice dice(7);
  RunTrace trace = synthetic_trace({}, dice);
  EXPECT_THAT(calibrate(trace, {}).error().message, HasSubstr("at least one"));
  EXPECT_THAT(cross_validate(trace, 1).error().message,
              HasSubstr("1 folds; must be from 2 to the number of plans, 12"));
  EXPECT_FALSE(cross_validate(trace, 13));
  trace.plans[3].iteration_time = Seconds(std::nan(""));
  EXPECT_THAT(calibrate(trace, all_plans(trace)).error().message, HasSubstr("plan 3: iteration time nan s"));
}

}  // namespace
}  // namespace perseus
