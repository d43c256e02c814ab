// Weighted linear least squares with non-negative unknowns, and their covariance.
//
// Problem: minimize sum_r weight_r^2 (sum_j a_rj x_j - b_r)^2 over x >= 0.
// Input:   rows, one at a time, sparse.
// Output:  the minimizer (Lawson and Hanson's active sets on the normal equations; the jitter of
//          base/linear_algebra.h settles directions that no row determines), and the covariance of the unknowns that
//          are not held at 0.
// Errors:  rows whose squares exceed a double's range determine nothing: the minimizer and the covariance are 0.
// Cost:    O(terms^2) a row, O(n^3) a pivot.
// Source:  Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23.
#pragma once

#include <algorithm>
#include <cmath>
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

// A fitted number with its standard deviation.

template <class Quantity>
struct Fitted {
  Quantity value{};
  Quantity stddev{};  ///< 0: given, not fitted; or fixed at its bound
};

/// Sizes of lists of errors: the mean absolute value, and whether one list is clearly smaller than another.
/// Input:   lists that are not empty; two lists that are compared have the errors of the same runs.
inline double mean_absolute(const std::vector<double>& errors) {
  double sum = 0;
  for (const double e : errors) sum += std::abs(e);
  return sum / static_cast<double>(errors.size());
}

/// A more detailed model must reduce the left-out errors at least to this share.
constexpr double kClearGain = 0.95;

/// Whether `errors` are smaller than `others` by 5 % and by more than the standard error of the difference.
inline bool clearly_smaller(const std::vector<double>& errors, const std::vector<double>& others) {
  const auto n = static_cast<double>(errors.size());
  double mean = 0, squares = 0;
  for (std::size_t p = 0; p < errors.size(); ++p) {
    const double gain = std::abs(others[p]) - std::abs(errors[p]);
    mean += gain / n;
    squares += gain * gain / n;
  }
  const double standard_error = std::sqrt(std::max(0.0, squares - mean * mean) / std::max(1.0, n - 1));
  return mean > standard_error && mean_absolute(errors) < kClearGain * mean_absolute(others);
}

}  // namespace perseus::calibration
