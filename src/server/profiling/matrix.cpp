#include "server/profiling/matrix.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/result.h"

namespace perseus::profiling {
namespace {

// Relative to the largest diagonal element: the first addition to the diagonal, and the growth factor of the next
// ones.
constexpr double kFirstJitter = 1e-14, kJitterStep = 100;

// out += the sum of factor(k) * row(k) over k; four at a time, to read and write `out` a quarter as often.
template <class Factor, class Row>
void add_combination(std::span<double> out, int count, Factor factor, Row row) {
  int k = 0;
  for (; k + 4 <= count; k += 4) {
    const double a = factor(k), b = factor(k + 1), c = factor(k + 2), d = factor(k + 3);
    if (a == 0 && b == 0 && c == 0 && d == 0) continue;
    const double *const p = row(k), *const q = row(k + 1), *const r = row(k + 2), *const s = row(k + 3);
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += (a * p[j] + b * q[j]) + (c * r[j] + d * s[j]);
  }
  for (; k < count; ++k) {
    const double a = factor(k);
    if (a == 0) continue;
    const double* const p = row(k);
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += a * p[j];
  }
}

bool factor(Matrix& a) {
  const int n = a.rows();
  for (int j = 0; j < n; ++j) {
    for (int i = j; i < n; ++i) {
      const double sum = a(i, j) - dot(a.row(i).first(j), a.row(j).first(j));
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

Matrix transposed(const Matrix& a) {
  Matrix result(a.columns(), a.rows());
  for (int i = 0; i < a.rows(); ++i) {
    for (int j = 0; j < a.columns(); ++j) result(j, i) = a(i, j);
  }
  return result;
}

Matrix product(const Matrix& a, const Matrix& b) {
  PERSEUS_CHECK(a.columns() == b.rows(), "sizes of a product");
  Matrix result(a.rows(), b.columns());
  for (int i = 0; i < a.rows(); ++i) {
    add_combination(
        result.row(i), a.columns(), [&](int k) { return a(i, k); }, [&](int k) { return b.row(k).data(); });
  }
  return result;
}

Matrix transposed_product(const Matrix& a, const Matrix& b) {
  PERSEUS_CHECK(a.rows() == b.rows(), "sizes of a product");
  Matrix result(a.columns(), b.columns());
  for (int i = 0; i < a.columns(); ++i) {
    add_combination(
        result.row(i), a.rows(), [&](int k) { return a(k, i); }, [&](int k) { return b.row(k).data(); });
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
  // Four independent sums: dependent additions take four times as long.
  double sums[4] = {0, 0, 0, 0};
  const std::size_t whole = a.size() / 4 * 4;
  for (std::size_t i = 0; i < whole; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (std::size_t i = whole; i < a.size(); ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
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
    x[i] = (x[i] - dot(lower_.row(i).first(i), std::span(x).first(i))) / lower_(i, i);
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
    add_combination(
        out, i, [&](int k) { return -lower_(i, k); }, [&](int k) { return x.row(k).data(); });
    for (double& value : out) value /= lower_(i, i);
  }
  return x;
}

}  // namespace perseus::profiling
