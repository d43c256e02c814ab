// Weighted linear least squares with non-negative unknowns, and their covariance.
//
// Problem: minimize sum_r weight_r^2 (sum_j a_rj x_j - b_r)^2 over x >= 0.
// Input:   rows, one at a time, sparse.
// Output:  the minimizer (Lawson and Hanson's active sets on the normal equations; the jitter of
//          base/linear_algebra.h settles directions that no row determines), and the covariance of the unknowns that
//          are not held at 0.
// Errors:  rows whose squares exceed a double's range determine nothing: the minimizer and the covariance are 0.
// Cost:    O(terms^2) a row, O(n^3) a pivot.
// Threads: plain value.
// Source:  Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23.
#pragma once

#include <span>
#include <vector>

#include "base/linear_algebra.h"

namespace perseus::calibration {

struct Term {
  int unknown = 0;
  double coefficient = 0;
};

class LeastSquares {
 public:
  explicit LeastSquares(int unknowns);
  void add(std::span<const Term> terms, double target, double weight);

  /// The minimizer; with `free` signs no unknown is held at 0.
  [[nodiscard]] std::vector<double> solve() const;
  [[nodiscard]] std::vector<double> solve_non_negative() const;
  /// Inverse of the normal matrix over the unknowns with x > 0 (n x n; 0 elsewhere): the covariance, if weights are
  /// 1 / standard deviation.
  [[nodiscard]] Matrix covariance(std::span<const double> x) const;

 private:
  enum class State : unsigned char { zero, positive, refused };  // refused: zero until x changes
  [[nodiscard]] bool is_finite() const;
  [[nodiscard]] int entering(const Vector& x, const std::vector<State>& states) const;
  /// The minimizer if all others are 0.
  [[nodiscard]] Vector solve(const std::vector<int>& unknowns) const;

  Matrix normal_;  ///< A'WA
  Vector target_;  ///< A'Wb
};

}  // namespace perseus::calibration
