// Fits the power of each stage as a function of its clock to energies of whole iterations.
//
// Problem: meters read once per iteration give a stage's total energy, not that of its forward and backward.
// Model:   while it computes, stage s draws P_s(f) watts, a piecewise-linear function of the clock that never falls
//          (forward and backward share it: the data cannot separate them); while it waits, P_blocking, the same for all
//          stages. Non-negative least squares over relative errors of the measured energies; a prior keeps changes of
//          slope between knots small (their prior deviation: `curvature`).
// Input:   some plans of a valid RunTrace.
// Output:  watts with standard deviations (posterior of the linear model, its noise estimated from the residuals).
// Cost:    O((stages * knots)^3).
// Source:  docs/fidelity.md.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "evaluation/calibration/least_squares.h"
#include "planning/model/run_trace.h"

namespace perseus::calibration {

struct StagePowerOptions {
  int knots = 8;                        ///< >= 2, evenly spaced between a stage's lowest and highest clock
  Watts curvature = Watts(3);           ///< prior spread of the change of rise between knot intervals
  std::optional<Watts> blocking_power;  ///< if given, it is not fitted
};

class StagePower {
 public:
  StagePower(const model::RunTrace& trace, std::span<const int> plans, const StagePowerOptions& options);

  [[nodiscard]] Fitted<Watts> at(int stage, Megahertz clock) const;
  [[nodiscard]] const Fitted<Watts>& blocking() const { return blocking_; }
  /// Root mean square of the relative errors of the stages' energies after the fit.
  [[nodiscard]] double residual() const { return residual_; }

 private:
  struct Range {
    Megahertz lowest, highest;
  };
  /// P_s(clock) as a sum of unknowns: the base, then one non-negative rise per knot interval.
  [[nodiscard]] std::vector<Term> terms(int stage, Megahertz clock) const;
  [[nodiscard]] int blocking_unknown() const { return static_cast<int>(ranges_.size()) * knots_; }
  [[nodiscard]] LeastSquares equations(const model::RunTrace& trace, std::span<const int> plans,
                                       const StagePowerOptions& options, double noise) const;

  int knots_ = 0;
  std::vector<Range> ranges_;
  std::vector<double> unknowns_;
  Matrix covariance_;
  Fitted<Watts> blocking_;
  double residual_ = 0;
};

}  // namespace perseus::calibration
