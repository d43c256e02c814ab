#include "base/linear_algebra.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/result.h"

namespace perseus {
namespace {

// Relative to the largest diagonal element: the first addition to the diagonal, and the growth factor of the next ones.
constexpr double kFirstJitter = 1e-12, kJitterStep = 100;

/// Replaces the lower triangle by its factor; false: a pivot is not above the square of `least`.
bool factor(Matrix& a, double least) {
  const Eigen::LLT<Eigen::Ref<Matrix>> in_place(a);
  return in_place.info() == Eigen::Success && a.diagonal().minCoeff() > least;
}

/// An unknown in no row gets the unit 1 and, in scaled(), the information 1, so that it becomes 0.
Vector scale_of(const Matrix& a) {
  return a.diagonal().unaryExpr([](double x) { return x > 0 ? 1 / std::sqrt(x) : 1; });
}

Matrix scaled(const Matrix& a, const Vector& scale) {
  Matrix result = scale.asDiagonal() * a * scale.asDiagonal();
  result.diagonal() = Vector::Ones(a.rows());
  return result;
}

}  // namespace

Cholesky::Cholesky(Matrix a) {
  if (a.rows() == 0) return;
  const double largest = std::max(a.diagonal().maxCoeff(), std::numeric_limits<double>::min());
  PERSEUS_CHECK(a.allFinite(), "a covariance is not finite");
  const double least = std::sqrt(static_cast<double>(a.rows()) * std::numeric_limits<double>::epsilon() * largest);
  lower_ = a;
  for (double jitter = kFirstJitter * largest; !factor(lower_, least); jitter *= kJitterStep) {
    lower_ = a;
    lower_.diagonal().array() += jitter;
  }
  lower_.triangularView<Eigen::StrictlyUpper>().setZero();
}

double Cholesky::log_determinant() const { return 2 * lower_.diagonal().array().log().sum(); }

Matrix Cholesky::solve_lower(Matrix x) const {
  lower_.triangularView<Eigen::Lower>().solveInPlace(x);
  return x;
}

Matrix Cholesky::solve(Matrix x) const {
  lower_.triangularView<Eigen::Lower>().solveInPlace(x);
  lower_.transpose().triangularView<Eigen::Upper>().solveInPlace(x);
  return x;
}

NormalEquations::NormalEquations(const Matrix& a) : scale_(scale_of(a)), factor_(scaled(a, scale_)) {}

Vector NormalEquations::solve(const Vector& b) const {
  return scale_.cwiseProduct(factor_.solve(scale_.cwiseProduct(b)).col(0));
}

Matrix NormalEquations::covariance() const {
  return scale_.asDiagonal() * factor_.solve(Matrix::Identity(scale_.size(), scale_.size())) * scale_.asDiagonal();
}

double NormalEquations::variance(const Vector& weights) const {
  return factor_.solve_lower(scale_.cwiseProduct(weights)).squaredNorm();
}

}  // namespace perseus
