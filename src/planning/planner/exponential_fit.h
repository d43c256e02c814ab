// Least-squares fit of a e^(b t) + c, with b <= 0, to the falling energy of a computation over its duration.
//
// Problem: find a, b, c with the least sum of squared errors.
// Method:  for a given b the other two are linear least squares (variable projection), which leaves a search in one
//          dimension: a grid over all useful b, then golden section. It finds the global optimum, where a descent from
//          an initial guess may stop elsewhere or diverge.
// Input:   durations, strictly monotone, in any unit; energies in any unit, falling as durations grow.
// Output:  the fitted function. Its limit for b -> 0, a straight line, is part of the family (the fit to concave data);
//          one point, or energies that do not fall, give a constant. It is convex and never rises.
// Errors:  none.
// Cost:    O(points * 400).
// Threads: plain value.
// Source:  paper appendix "Continuous Relaxation".
#pragma once

#include <span>

namespace perseus::planner {

class ExponentialFit {
 public:
  ExponentialFit(std::span<const double> times, std::span<const double> energies);

  [[nodiscard]] double at(double time) const;
  /// Mean of squared errors over the fitted points.
  [[nodiscard]] double mean_squared_error() const { return mean_squared_error_; }
  /// b, the exponent per unit of time; 0 for a straight line.
  [[nodiscard]] double exponent() const { return -rate_ / span_; }

 private:
  // offset + slope * (1 - e^(-rate s)) / rate with s = (time - start) / span: no number grows with e^(b t).
  double start_ = 0;
  double span_ = 1;
  double rate_ = 0;
  double offset_ = 0;
  double slope_ = 0;
  double mean_squared_error_ = 0;
};

}  // namespace perseus::planner
