// Calibration recovers the constants of synthetic traces: exactly without noise, within error bars with noise.
#include "evaluation/calibration/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "evaluation/calibration/doubts.h"
#include "tests/support/synthetic_trace.h"

namespace perseus::calibration {
namespace {

using testing::all_plans;
using ::testing::HasSubstr;
using testing::SeededDice;
using testing::synthetic_trace;
using testing::TrueRun;

Calibration calibrated(const model::RunTrace& trace, const CalibrationOptions& options = {}) {
  auto calibration = calibrate(trace, all_plans(trace), options);
  EXPECT_TRUE(calibration) << calibration.error().message;
  return *std::move(calibration);
}

void expect_found(const Calibration& found, const TrueRun& truth, const model::RunTrace& trace) {
  EXPECT_EQ(found.blocking_transfers, truth.blocking_transfers);
  EXPECT_NEAR(found.transfer_latency.largest().value(), truth.transfer_latency.common.value(), 1e-6);
  EXPECT_NEAR(found.tail.value.value(), truth.tail.value(), 1e-5);
  ASSERT_EQ(found.loading.size(), 2U);
  for (const StageLoading& loading : found.loading)
    EXPECT_NEAR(loading.per_microbatch.value.value(), truth.loading.value(), 1e-5);
  EXPECT_NEAR(found.power.blocking().value.value(), truth.blocking_power.value(), 1e-2);
  EXPECT_NEAR(found.time_correction, 1, 1e-6);
  const std::vector<int> plans = all_plans(trace);
  const model::Profile profile = make_profile(found, trace, plans);
  EXPECT_TRUE(profile.validate());
  for (const model::ProfileEntry& entry : profile.entries) {
    const model::Instruction instruction = *model::instruction_named(entry.instruction);
    if (model::is_constant_time(instruction)) continue;
    for (const model::Measurement& m : entry.measurements) {
      const Seconds time = truth.time(entry.stage, instruction, m.clock);
      EXPECT_NEAR(m.time / time, 1, 1e-6);
      EXPECT_NEAR(m.energy / (truth.power(entry.stage, m.clock) * time), 1, 1e-4);
    }
  }
}

TEST(Calibrate, RecoversTheParametersOfExactTraces) {
  const TrueRun truth;
  SeededDice dice(1);
  const model::RunTrace trace = synthetic_trace(truth, dice);
  expect_found(calibrated(trace), truth, trace);
}

TEST(Calibrate, DistinguishesTransfersThatTheSenderWaitsFor) {
  TrueRun truth;
  truth.blocking_transfers = false;
  truth.transfer_latency = Seconds(0.011);
  SeededDice dice(2);
  const model::RunTrace trace = synthetic_trace(truth, dice);
  expect_found(calibrated(trace), truth, trace);
}

TEST(Calibrate, IsNotMisledByTheFirstMicrobatchesBeingFaster) {
  TrueRun truth;
  truth.first_backward_factor = 0.95;
  SeededDice dice(3);
  const model::RunTrace trace = synthetic_trace(truth, dice);
  const Calibration found = calibrated(trace);
  const double average = std::pow(truth.first_backward_factor, 1.0 / truth.microbatches);  // of all microbatches
  for (const Megahertz clock : testing::synthetic_clocks()) {
    const Seconds time = found.times.at(1, model::Instruction::backward, clock);
    EXPECT_NEAR(time / truth.time(1, model::Instruction::backward, clock), average, 1e-6) << clock.value();
  }
}

TEST(Calibrate, ErrorBarsCoverTheTruth) {
  // Twenty noisy traces: each number is off by one standard deviation on average, and rarely by three.
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
        (*found.transfer_latency.between(0, 1, 3) - truth.transfer_latency.common) /
            *found.transfer_latency_stddev.between(0, 1, 3),
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
  truth.plans = 40;  // so that the traces contain every clock of every computation
  SeededDice dice(4);
  const model::RunTrace trace = synthetic_trace(truth, dice);
  const auto predictions = cross_validate(trace, 5);
  ASSERT_TRUE(predictions) << predictions.error().message;
  ASSERT_EQ(predictions->size(), 40U);
  for (std::size_t p = 0; p < predictions->size(); ++p) EXPECT_EQ((*predictions)[p].plan, static_cast<int>(p));
  const PredictionErrors errors = errors_of(*predictions);
  EXPECT_LT(errors.time_max, 1e-3);
  EXPECT_LT(errors.replay_mean, 1e-4);
  EXPECT_LT(errors.energy_max, 2e-3);
}

TEST(Calibrate, PutsLoadingThatFollowsTheClockIntoTheForward) {
  TrueRun truth;
  truth.plans = 40;
  truth.loading_rise_per_mhz = 1e-3;
  SeededDice dice(8);
  const model::RunTrace trace = synthetic_trace(truth, dice);
  CalibrationOptions options;
  options.timing.details = {LinkDetail::one};
  const auto predictions = cross_validate(trace, 5, options);
  ASSERT_TRUE(predictions) << predictions.error().message;
  EXPECT_LT(errors_of(*predictions).time_max, 1e-3);

  const Calibration found = calibrated(trace, options);
  const std::vector<int> plans = all_plans(trace);
  const model::Profile profile = make_profile(found, trace, plans);
  const Megahertz lowest = testing::synthetic_clocks().back();
  const Seconds load = profile.find(0, "load")->measurements[0].time;
  for (const model::Measurement& m : profile.find(0, "forward")->measurements) {
    const Seconds forward = truth.time(0, model::Instruction::forward, m.clock);
    const Seconds both = m.time + load, loading = both - forward;
    const double clock_mhz =
        std::clamp<double>(m.clock.value(), found.loading[0].lowest_mhz, found.loading[0].highest_mhz);
    const auto clock = Megahertz(static_cast<int>(std::lround(clock_mhz)));
    // The fit spreads a plan's loading evenly over its microbatches, of which the first has a clock of its own.
    EXPECT_NEAR(loading / truth.loading_at(0, clock, lowest), 1, 0.05) << m.clock.value();
    const Joules expected = truth.power(0, m.clock) * forward + truth.blocking_power * (m.time - forward);
    EXPECT_NEAR(m.energy / expected, 1, 1e-3);
  }
}

/// Traces of two nodes where the link between two nodes is slow, and two of the runs were disturbed.
model::RunTrace two_nodes_with_disturbed_runs(Seconds slow) {
  TrueRun truth;
  truth.stages = 4;
  truth.plans = 30;
  truth.microbatches = 12;
  truth.tail = Seconds(0);
  truth.blocking_transfers = true;
  const model::BoundaryLatency fast{Seconds(0.002), Seconds(0.002)};
  truth.transfer_latency = model::TransferLatency({fast, {slow, slow}, fast});
  truth.iteration_noise = 1e-4;
  SeededDice dice(11);
  model::RunTrace trace = synthetic_trace(truth, dice);
  for (const int disturbed : {4, 17}) {
    model::TracedPlan& plan = trace.plans[disturbed];
    plan.iteration_time = plan.iteration_time * 1.08;
  }
  return trace;
}

TEST(Calibrate, FindsASlowLinkInSpiteOfDisturbedRuns) {
  const Calibration found = calibrated(two_nodes_with_disturbed_runs(Seconds(0.03)));
  EXPECT_NE(found.timing.best().links.detail, LinkDetail::one);
  ASSERT_EQ(found.transfer_latency.boundaries.size(), 3U);
  const auto& boundaries = found.transfer_latency.boundaries;
  EXPECT_NEAR(boundaries[1].forward.value(), 0.03, 0.002);
  EXPECT_NEAR(boundaries[0].forward.value(), 0.002, 0.002);
  EXPECT_LT(found.tail.value, Seconds(0.02));
}

TEST(Calibrate, DisturbedRunsMoveLeastSquaresButNotStudentT) {
  const model::RunTrace trace = two_nodes_with_disturbed_runs(Seconds(0.03));
  const auto missed_s = [&](ErrorModel errors) {
    CalibrationOptions options;
    options.timing.details = {LinkDetail::per_node};
    options.timing.errors = errors;
    const Calibration found = calibrated(trace, options);
    return std::abs(found.transfer_latency.boundaries[1].forward.value() - 0.03);
  };
  EXPECT_GT(missed_s(ErrorModel::normal), 2e-3);
  EXPECT_LT(missed_s(ErrorModel::student_t), 2e-4);
}

TEST(Calibrate, ErrorBarIsAQuantileOfErrorsOnPlansLeftOut) {
  std::vector<double> errors;
  for (int i = 1; i <= 40; ++i) errors.push_back((i % 2 == 0 ? 1e-4 : -1e-4) * i);
  EXPECT_DOUBLE_EQ(error_bar(errors), 39e-4);  // the 39th of 40, for 95 % of the 41st
  EXPECT_NEAR(coverage(errors), 0.95, 0.03);
  EXPECT_TRUE(suspicious(errors).empty());
  errors[7] = 0.03;  // more than ten times the median, 20e-4
  EXPECT_THAT(suspicious(errors), ::testing::ElementsAre(7));
  EXPECT_EQ(error_bar({}), 0);
}

TEST(Calibrate, DoubtsNameDisturbedRunsAndTheMissingMeasurement) {
  const model::RunTrace trace = two_nodes_with_disturbed_runs(Seconds(0.03));
  const Calibration found = calibrated(trace);
  const auto predictions = predict(found, trace, all_plans(trace));
  const std::vector<std::string> doubts = doubts_of(found, predictions, trace);
  EXPECT_THAT(doubts, ::testing::Contains(HasSubstr("plan 4 took")));
  EXPECT_THAT(doubts, ::testing::Contains(HasSubstr("plan 17 took")));
}

TEST(Calibrate, WarnsOfConstantsSmallerThanTheirUncertainty) {
  TrueRun truth;
  SeededDice dice(21);
  const model::RunTrace trace = synthetic_trace(truth, dice);
  Calibration found = calibrated(trace);
  const auto smaller_than_uncertainty = [&] {
    std::vector<std::string> about;
    for (const std::string& doubt : doubts_of(found, {}, trace)) {
      if (const auto at = doubt.find(" is smaller than its uncertainty"); at != std::string::npos)
        about.push_back(doubt.substr(0, at));
    }
    return about;
  };
  found.timing.candidates.resize(1);  // one latency for all boundaries
  found.timing.chosen = 0;
  TimingFit& fit = found.timing.candidates[0].fit;
  found.timing.candidates[0].left_out_errors = fit.errors;
  const auto set_all = [&fit](double value_s, double stddev_s) {
    for (int k = 0; k < static_cast<int>(fit.unknowns.size()); ++k) {
      fit.unknowns[k] = value_s;
      fit.covariance(k, k) = stddev_s * stddev_s;
    }
  };
  set_all(0.007, 0.0001);
  EXPECT_THAT(smaller_than_uncertainty(), ::testing::IsEmpty());
  set_all(0.007, 0.0272);
  EXPECT_THAT(smaller_than_uncertainty(),
              ::testing::ElementsAre("the transfer latency", "loading of stage 0", "loading of stage 2", "the tail"));
}

TEST(Calibrate, WarnsWhereTheNetworkIsTheBottleneck) {
  TrueRun truth;
  truth.transfer_latency = Seconds(1);
  SeededDice dice(12);
  const model::RunTrace trace = synthetic_trace(truth, dice);
  const Calibration found = calibrated(trace);
  EXPECT_GT(found.outside_computing, 0.5);
  EXPECT_THAT(doubts_of(found, predict(found, trace, all_plans(trace)), trace),
              ::testing::Contains(HasSubstr("the network is the bottleneck")));
}

/// Where the network is the bottleneck: 1F1B of four stages, transfers as long as a forward and a backward.
TrueRun network_bound_run() {
  TrueRun truth;
  truth.stages = 4;
  truth.plans = 24;
  truth.microbatches = 10;
  truth.tail = Seconds(0);
  truth.blocking_transfers = false;
  truth.transfer_latency = Seconds(0.5);
  return truth;
}

TEST(Calibrate, FindsLinksThatCarryOneTransferAtATime) {
  TrueRun truth = network_bound_run();
  truth.queues = true;
  truth.iteration_noise = 1e-4;
  SeededDice dice(31);
  const model::RunTrace trace = synthetic_trace(truth, dice);
  CalibrationOptions options;
  options.timing.details = {LinkDetail::one};
  const Calibration found = calibrated(trace, options);
  EXPECT_GT(found.outside_computing, kNetworkBound);
  EXPECT_TRUE(found.serial_transfers);
  EXPECT_TRUE(found.costs().serial_transfers);
  EXPECT_FALSE(found.blocking_transfers);
  EXPECT_NEAR(found.transfer_latency.largest().value(), 0.5, 1e-3);
  double unlimited = 1;
  for (const TimingCandidate& candidate : found.timing.candidates) {
    if (candidate.sending != Sending::queues) unlimited = std::min(unlimited, candidate.left_out_mean());
  }
  EXPECT_LT(found.timing.best().left_out_mean(), 3e-4);
  EXPECT_GT(unlimited, 2e-3);
  // Plans, checker and files use the same links.
  const auto predictions = cross_validate(trace, 4, options);
  ASSERT_TRUE(predictions) << predictions.error().message;
  EXPECT_LT(errors_of(*predictions).replay_mean, 5e-4);
  EXPECT_THAT(doubts_of(found, *predictions, trace), ::testing::Contains(HasSubstr("serial_transfers")));
}

TEST(Calibrate, ChoosesNoQueueWhereThereIsNone) {
  SeededDice dice(32);
  const model::RunTrace trace = synthetic_trace(network_bound_run(), dice);
  CalibrationOptions options;
  options.timing.details = {LinkDetail::one};
  const Calibration found = calibrated(trace, options);
  EXPECT_GT(found.outside_computing, kNetworkBound);
  EXPECT_FALSE(found.serial_transfers);
  EXPECT_NEAR(found.transfer_latency.largest().value(), 0.5, 1e-6);
  EXPECT_THAT(doubts_of(found, {}, trace), ::testing::Contains(HasSubstr("not chosen")));
}

TEST(Calibrate, CrossValidationReportsItsProgress) {
  SeededDice dice(5);
  const model::RunTrace trace = synthetic_trace({}, dice);
  CalibrationOptions options;
  std::vector<double> reported;
  options.progress = [&](double done) { reported.push_back(done); };
  EXPECT_TRUE(cross_validate(trace, 4, options));
  EXPECT_THAT(reported, ::testing::ElementsAre(0.25, 0.5, 0.75, 1));
}

TEST(Calibrate, TakesABlockingPowerThatIsKnown) {
  SeededDice dice(5);
  const model::RunTrace trace = synthetic_trace({}, dice);
  CalibrationOptions options;
  options.power.blocking_power = Watts(65);
  const Calibration found = calibrated(trace, options);
  EXPECT_EQ(found.power.blocking().value, Watts(65));
  EXPECT_EQ(found.power.blocking().stddev, Watts(0));
}

TEST(Calibrate, RefusesTracesThatDetermineNothing) {
  SeededDice dice(7);
  model::RunTrace trace = synthetic_trace({}, dice);
  EXPECT_THAT(calibrate(trace, {}).error().message, HasSubstr("at least one"));
  EXPECT_THAT(cross_validate(trace, 1).error().message,
              HasSubstr("1 folds; must be from 2 to the number of plans, 12"));
  EXPECT_FALSE(cross_validate(trace, 13));
  trace.plans[3].iteration_time = Seconds(std::nan(""));
  EXPECT_THAT(calibrate(trace, all_plans(trace)).error().message, HasSubstr("plan 3: iteration time nan s"));
}

}  // namespace
}  // namespace perseus::calibration
