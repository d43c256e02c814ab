#include "profiling/matrix.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/result.h"

namespace perseus::profiling {
namespace {

// Of the largest diagonal element: the first addition to the diagonal that is tried, and what the next ones grow by.
constexpr double kFirstJitter = 1e-14, kJitterStep = 100;

bool factor(Matrix& a) {
  const int n = a.rows();
  for (int j = 0; j < n; ++j) {
    for (int i = j; i < n; ++i) {
      double sum = a(i, j);
      const std::span<const double> left = a.row(i), right = a.row(j);
      for (int k = 0; k < j; ++k) sum -= left[k] * right[k];
      if (i == j) {
        if (!(sum > 0)) return false;
        a(j, j) = std::sqrt(sum);
      } else {
        a(i, j) = sum / a(j, j);
      }
    }
  }
  for (int i = 0; i < n; ++i) {
    for (int j = i + 1; j < n; ++j) a(i, j) = 0;
  }
  return true;
}

}  // namespace

Matrix product(const Matrix& a, const Matrix& b) {
  PERSEUS_CHECK(a.columns() == b.rows(), "sizes of a product");
  Matrix result(a.rows(), b.columns());
  for (int i = 0; i < a.rows(); ++i) {
    const std::span<double> out = result.row(i);
    for (int k = 0; k < a.columns(); ++k) {
      const double factor = a(i, k);
      if (factor == 0) continue;
      const std::span<const double> row = b.row(k);
      for (int j = 0; j < b.columns(); ++j) out[j] += factor * row[j];
    }
  }
  return result;
}

Matrix transposed_product(const Matrix& a, const Matrix& b) {
  PERSEUS_CHECK(a.rows() == b.rows(), "sizes of a product");
  Matrix result(a.columns(), b.columns());
  for (int k = 0; k < a.rows(); ++k) {
    const std::span<const double> row = b.row(k);
    for (int i = 0; i < a.columns(); ++i) {
      const double factor = a(k, i);
      if (factor == 0) continue;
      const std::span<double> out = result.row(i);
      for (int j = 0; j < b.columns(); ++j) out[j] += factor * row[j];
    }
  }
  return result;
}

std::vector<double> product(const Matrix& a, std::span<const double> x) {
  std::vector<double> result(a.rows());
  for (int i = 0; i < a.rows(); ++i) result[i] = dot(a.row(i), x);
  return result;
}

std::vector<double> transposed_product(const Matrix& a, std::span<const double> x) {
  std::vector<double> result(a.columns());
  for (int k = 0; k < a.rows(); ++k) {
    for (int i = 0; i < a.columns(); ++i) result[i] += a(k, i) * x[k];
  }
  return result;
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void add(Matrix& a, double factor, const Matrix& b) {
  for (int i = 0; i < a.rows(); ++i) {
    for (int j = 0; j < a.columns(); ++j) a(i, j) += factor * b(i, j);
  }
}

Cholesky::Cholesky(Matrix a) {
  double largest = 1e-300;
  for (int i = 0; i < a.rows(); ++i) largest = std::max(largest, a(i, i));
  PERSEUS_CHECK(std::isfinite(largest), "a covariance is not finite");
  lower_ = a;
  for (double jitter = kFirstJitter * largest; !factor(lower_); jitter *= kJitterStep) {
    lower_ = a;
    for (int i = 0; i < a.rows(); ++i) lower_(i, i) += jitter;
  }
}

double Cholesky::log_determinant() const {
  double sum = 0;
  for (int i = 0; i < lower_.rows(); ++i) sum += 2 * std::log(lower_(i, i));
  return sum;
}

std::vector<double> Cholesky::solve_lower(std::vector<double> x) const {
  for (int i = 0; i < lower_.rows(); ++i) {
    for (int k = 0; k < i; ++k) x[i] -= lower_(i, k) * x[k];
    x[i] /= lower_(i, i);
  }
  return x;
}

std::vector<double> Cholesky::solve(std::span<const double> b) const {
  std::vector<double> x = solve_lower(std::vector<double>(b.begin(), b.end()));
  for (int i = lower_.rows() - 1; i >= 0; --i) {
    x[i] /= lower_(i, i);
    for (int k = 0; k < i; ++k) x[k] -= lower_(i, k) * x[i];
  }
  return x;
}

Matrix Cholesky::solve_lower(Matrix x) const {
  for (int i = 0; i < lower_.rows(); ++i) {
    const std::span<double> out = x.row(i);
    for (int k = 0; k < i; ++k) {
      const double factor = lower_(i, k);
      if (factor == 0) continue;
      const std::span<const double> row = x.row(k);
      for (int j = 0; j < x.columns(); ++j) out[j] -= factor * row[j];
    }
    for (double& value : out) value /= lower_(i, i);
  }
  return x;
}

}  // namespace perseus::profiling
