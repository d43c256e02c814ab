// Small dense matrices and the Cholesky factor of symmetric positive definite ones.
//
// Problem: curves over some dozens of clocks have covariances of that size.
// Input:   row by row.
// Output:  solutions, the determinant's logarithm, and L z for sampling.
// Errors:  a matrix that is not positive definite gets the least addition to its diagonal that makes it so (rounding,
//          or a clock with zero prior variance); mismatched sizes are a programming error.
// Cost:    O(n^3) to factor, O(n^2) per solution.
// Threads: plain values.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace perseus::profiling {

class Matrix {
 public:
  Matrix() = default;
  Matrix(int rows, int columns)
      : rows_(rows), columns_(columns), values_(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)) {}

  [[nodiscard]] int rows() const { return rows_; }
  [[nodiscard]] int columns() const { return columns_; }
  double& operator()(int row, int column) { return values_[index(row, column)]; }
  double operator()(int row, int column) const { return values_[index(row, column)]; }
  [[nodiscard]] std::span<double> row(int r) {
    return {values_.data() + index(r, 0), static_cast<std::size_t>(columns_)};
  }
  [[nodiscard]] std::span<const double> row(int r) const {
    return {values_.data() + index(r, 0), static_cast<std::size_t>(columns_)};
  }

 private:
  [[nodiscard]] std::size_t index(int row, int column) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column);
  }
  int rows_ = 0, columns_ = 0;
  std::vector<double> values_;
};

Matrix transposed(const Matrix& a);
/// a b, and a transposed b.
Matrix product(const Matrix& a, const Matrix& b);
Matrix transposed_product(const Matrix& a, const Matrix& b);
std::vector<double> product(const Matrix& a, std::span<const double> x);
std::vector<double> transposed_product(const Matrix& a, std::span<const double> x);
double dot(std::span<const double> a, std::span<const double> b);
/// a += factor * b
void add(Matrix& a, double factor, const Matrix& b);

/// L with L L' = a.
class Cholesky {
 public:
  explicit Cholesky(Matrix a);
  [[nodiscard]] const Matrix& lower() const { return lower_; }
  [[nodiscard]] double log_determinant() const;
  /// a^-1 x, and L^-1 x (of each column, for a matrix).
  [[nodiscard]] std::vector<double> solve(std::span<const double> x) const;
  [[nodiscard]] Matrix solve_lower(Matrix x) const;
  [[nodiscard]] std::vector<double> solve_lower(std::vector<double> x) const;

 private:
  Matrix lower_;
};

}  // namespace perseus::profiling
