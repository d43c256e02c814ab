// Batch loading time of the stages that load, as a function of the clock of the stage's forward.
//
// Problem: loading may depend on the plan. In one published workload a batch takes 14 % longer where the first stage
//          computes at its highest clock than where it computes at its lowest. One constant then makes slow plans too
//          slow and fast plans too fast.
// Model:   loading of a microbatch is a line over the clock of its forward, fitted to each plan's total and its mean
//          clock, and constant beyond the clocks of these means. The line replaces the mean only if it predicts the
//          loading of plans left out clearly better, and only on the first stage: the last stage loads while it waits
//          for its input.
// Input:   some plans of a valid RunTrace, at least one; its schedule's microbatches.
// Output:  one StageLoading for each of the first and the last stage that loads.
// Cost:    O(plans + computations).
// Source:  docs/fidelity.md.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "evaluation/calibration/least_squares.h"
#include "planning/model/run_trace.h"

namespace perseus::calibration {

struct StageLoading {
  int stage = 0;
  Seconds measured;                ///< mean of one microbatch in the plans of the fit
  Fitted<Seconds> per_microbatch;  ///< the share of it that delays the pipeline
  double rise_per_mhz = 0;         ///< relative to the mean; 0: independent of the clock
  double mean_mhz = 0;             ///< mean clock of the stage's forwards
  double lowest_mhz = 0;           ///< of the plans' mean clocks
  double highest_mhz = 0;

  /// What delays the pipeline where the forward runs at `clock`.
  [[nodiscard]] Seconds at(Megahertz clock) const;
};

std::vector<StageLoading> measured_loading(const model::RunTrace& trace, std::span<const int> plans, int microbatches);

}  // namespace perseus::calibration
