// Factors symmetric matrices that are positive definite except for rounding: covariances and normal equations.
//
// Problem: a covariance of a difference, or normal equations with a direction that no row determines, has pivots of the
//          size of rounding errors. Jitter, here only: where a pivot is not above n * epsilon times the largest
//          diagonal element, the diagonal grows by 1e-12 of that element, and 100 times as much until all pivots are
//          above.
// Input:   the lower triangle of a square matrix; right sides of its size.
// Output:  the factor, solutions, variances.
// Errors:  none; a value that is not finite on the diagonal is a programming error.
// Cost:    O(n^3) to factor, O(n^2) per solution; allocates as std::vector does.
// Threads: const functions are pure.
// Source:  Eigen; docs/decisions/0046.
#pragma once

#include <Eigen/Core>
#include <span>
#include <vector>

namespace perseus {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

inline Eigen::Map<const Vector> as_vector(std::span<const double> values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}
inline std::vector<double> as_list(const Vector& values) { return {values.begin(), values.end()}; }

/// L with L L' = a. The elements of `a` have one unit.
class Cholesky {
 public:
  explicit Cholesky(Matrix a);
  /// Zero above the diagonal.
  [[nodiscard]] const Matrix& lower() const { return lower_; }
  [[nodiscard]] double log_determinant() const;
  /// a^-1 x, and L^-1 x, of each column.
  [[nodiscard]] Matrix solve(Matrix x) const;
  [[nodiscard]] Matrix solve_lower(Matrix x) const;

 private:
  Matrix lower_;
};

/// The unknowns x that normal equations a x = b determine, a being a sum of weighted squares (the inverse of the
/// covariance of x). Each unknown may have its own unit: the jitter is relative to the unknown's own diagonal element.
class NormalEquations {
 public:
  explicit NormalEquations(const Matrix& a);
  [[nodiscard]] Vector solve(const Vector& b) const;
  [[nodiscard]] Matrix covariance() const;
  /// Of the combination weights' x.
  [[nodiscard]] double variance(const Vector& weights) const;

 private:
  Vector scale_;  ///< makes each diagonal element 1
  Cholesky factor_;
};

}  // namespace perseus
