// Calibrates a profile and the constants of a pipeline's DAG from traces of real runs; predicts plans to validate them.
//
// Problem: a profile contains the times of computations, not what a training framework adds: transfers, batch loading,
//          and the rest at the end of an iteration. calibrate() fits these from runs under several frequency plans,
//          together with the times and energies of the computations themselves. predict() then runs a plan in the plan
//          checker with only that result; cross_validate() predicts plans that calibrate() did not see.
// Input:   a valid RunTrace (one stage per rank), indices of the plans to learn from.
// Output:  Calibration; every number with its standard deviation.
// Errors:  an invalid trace, too few plans, numbers so far apart that no finite ones fit.
// Cost:    O(plans * computations) times about a hundred.
// Source:  paper section 6.1; docs/fidelity.md.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "evaluation/calibration/choose_timing.h"
#include "evaluation/calibration/clock_times.h"
#include "evaluation/calibration/least_squares.h"
#include "evaluation/calibration/stage_loading.h"
#include "evaluation/calibration/stage_power.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/run_trace.h"

namespace perseus::calibration {

constexpr double kNetworkBound = 0.5;

struct CalibrationOptions {
  StagePowerOptions power;
  TimingOptions timing;
  bool other_links = false;                        ///< whether to find Calibration::other_links
  std::function<void(double done)> progress = {};  ///< called by cross_validate() with 0..1, once per fold
};

struct Calibration {
  model::Schedule schedule;
  ClockTimes times;
  StagePower power;
  TimingChoice timing{};
  model::TransferLatency transfer_latency{};
  model::TransferLatency transfer_latency_stddev{};
  bool blocking_transfers = false;      ///< see PipelineCosts
  bool serial_transfers = false;        ///< likewise; tried where the network is the bottleneck
  std::vector<StageLoading> loading{};  ///< of the first and the last stage, if the trace has any
  Fitted<Seconds> tail{};
  /// Factor on the times in profiles that makes iteration times right on average: a profile has one time per clock,
  /// but the first and last microbatches, which the whole pipeline waits for, run a little faster than others.
  double time_correction = 1;
  /// Share of an iteration in which the busiest stage does not compute. Above kNetworkBound the network is the
  /// bottleneck.
  double outside_computing = 0;
  std::vector<model::OtherLinks> other_links{};  ///< that explain the runs about as well, see allowed_links()
  double time_residual = 0;  ///< rms of relative errors of fitted iteration times, with computations as measured

  [[nodiscard]] model::PipelineCosts costs() const {
    return {power.blocking().value, transfer_latency, blocking_transfers, serial_transfers};
  }
};

Result<Calibration> calibrate(const model::RunTrace& trace, std::span<const int> plans,
                              const CalibrationOptions& options = {});

/// At the clocks of `plans`. Times with the spread of the samples, energies with the standard deviation of the fitted
/// power; `load` and `optimizer_step` draw blocking power. Where loading depends on the clock of the forward, `load`
/// has its least time, and the forward's times and energies contain the rest. Clocks without samples are interpolated
/// and count as one sample without spread.
model::Profile make_profile(const Calibration& calibration, const model::RunTrace& trace, std::span<const int> plans);

/// One plan, measured and simulated.
struct Prediction {
  int plan = 0;  ///< index into RunTrace::plans
  Seconds measured_time;
  Seconds predicted_time;
  Seconds replayed_time;  ///< with the plan's own computation and loading times: the remaining error is the model's
  Joules measured_energy;
  Joules predicted_energy;
  [[nodiscard]] double time_error() const { return predicted_time / measured_time - 1; }
  [[nodiscard]] double replay_error() const { return replayed_time / measured_time - 1; }
  [[nodiscard]] double energy_error() const { return predicted_energy / measured_energy - 1; }
};
std::vector<Prediction> predict(const Calibration& calibration, const model::RunTrace& trace,
                                std::span<const int> plans);

/// Predicts each of `folds` groups of plans from all other groups; plans join the groups in turn, in the order of the
/// trace. folds = number of plans leaves one out at a time.
/// Output:  one prediction per plan, in the order of the trace.
/// Errors:  folds not in 2..plans.
Result<std::vector<Prediction>> cross_validate(const model::RunTrace& trace, int folds,
                                               const CalibrationOptions& options = {});

/// Errors of predictions, relative.
struct PredictionErrors {
  double time_mean = 0;  ///< mean of absolute values
  double time_max = 0;
  double replay_mean = 0;
  double energy_rms = 0;
  double energy_max = 0;
  double time_bar = 0;  ///< error_bar() of the time errors
  double time_coverage = 0;
  double energy_bar = 0;
  double energy_coverage = 0;
};
/// Half-width of the interval that contains kErrorBarShare of new plans' relative errors, from errors of plans left
/// out (split conformal: a quantile of their absolute values). 0 without errors.
constexpr double kErrorBarShare = 0.95;
double error_bar(std::span<const double> errors);
/// Share of the errors that are within the error bar of the other errors.
double coverage(std::span<const double> errors);
/// Plans (positions in `errors`) whose error is at least 10 times the median and above 0.1 %: runs to inspect.
std::vector<int> suspicious(std::span<const double> errors);

PredictionErrors errors_of(std::span<const Prediction> predictions);

}  // namespace perseus::calibration
