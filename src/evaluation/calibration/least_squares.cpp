#include "evaluation/calibration/least_squares.h"

#include <algorithm>
#include <cmath>

namespace perseus::calibration {
namespace {

constexpr double kRidge = 1e-12;

/// Solves L L' x = b in place; L is m x m, row by row.
void substitute(const std::vector<double>& factor, std::vector<double>& b) {
  const std::size_t m = b.size();
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < i; ++j) b[i] -= factor[i * m + j] * b[j];
    b[i] /= factor[i * m + i];
  }
  for (std::size_t i = m; i-- > 0;) {
    for (std::size_t j = i + 1; j < m; ++j) b[i] -= factor[j * m + i] * b[j];
    b[i] /= factor[i * m + i];
  }
}

}  // namespace

LeastSquares::LeastSquares(int unknowns)
    : n_(unknowns), normal_(static_cast<std::size_t>(unknowns) * unknowns), target_(unknowns) {}

void LeastSquares::add(std::span<const Term> terms, double target, double weight) {
  const double w2 = weight * weight;
  for (const Term& a : terms) {
    target_[a.unknown] += w2 * a.coefficient * target;
    for (const Term& b : terms)
      normal_[static_cast<std::size_t>(a.unknown) * n_ + b.unknown] += w2 * a.coefficient * b.coefficient;
  }
}

std::vector<double> LeastSquares::factor(const std::vector<int>& unknowns) const {
  const std::size_t m = unknowns.size();
  std::vector<double> factor(m * m);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = normal(unknowns[i], unknowns[j]);
      for (std::size_t k = 0; k < j; ++k) sum -= factor[i * m + k] * factor[j * m + k];
      if (i != j) {
        factor[i * m + j] = sum / factor[j * m + j];
        continue;
      }
      const double diagonal = normal(unknowns[i], unknowns[i]);
      const double least = diagonal > 0 ? kRidge * diagonal : 1;
      factor[i * m + i] = std::sqrt(std::max(sum, least));
    }
  }
  return factor;
}

std::vector<double> LeastSquares::solve(const std::vector<int>& unknowns) const {
  std::vector<double> part(unknowns.size());
  for (std::size_t i = 0; i < unknowns.size(); ++i) part[i] = target_[unknowns[i]];
  substitute(factor(unknowns), part);
  std::vector<double> x(n_);
  for (std::size_t i = 0; i < unknowns.size(); ++i) x[unknowns[i]] = part[i];
  return x;
}

std::vector<double> LeastSquares::solve() const {
  std::vector<int> all(n_);
  for (int i = 0; i < n_; ++i) all[i] = i;
  return solve(all);
}

std::vector<double> LeastSquares::solve_non_negative() const {
  std::vector<double> x(n_);
  std::vector<int> positive;
  std::vector<char> is_positive(n_), refused(n_);
  const auto slope = [&](int i) {
    double w = target_[i];
    for (int j = 0; j < n_; ++j) w -= normal(i, j) * x[j];
    return w;
  };
  for (int round = 0; round < 10 * n_; ++round) {
    int entering = -1;
    double steepest = 0;
    for (int i = 0; i < n_; ++i) {
      if (is_positive[i] != 0 || refused[i] != 0 || normal(i, i) <= 0) continue;
      const double gain = slope(i) / std::sqrt(normal(i, i));  // invariant under scaling of the unknown
      if (gain > std::max(steepest, 1e-11 * std::abs(target_[i]) / std::sqrt(normal(i, i)))) {
        steepest = gain;
        entering = i;
      }
    }
    if (entering == -1) break;
    is_positive[entering] = 1;
    bool stepped = false;
    for (;;) {
      positive.clear();
      for (int i = 0; i < n_; ++i) {
        if (is_positive[i] != 0) positive.push_back(i);
      }
      const std::vector<double> next = solve(positive);
      if (!stepped && next[entering] <= 0) {  // rounding errors made the gain appear
        is_positive[entering] = 0;
        refused[entering] = 1;
        break;
      }
      double share = 1;
      for (const int i : positive) {
        if (next[i] <= 0) share = std::min(share, x[i] / (x[i] - next[i]));
      }
      for (const int i : positive) x[i] += share * (next[i] - x[i]);
      stepped = true;
      if (share == 1) {
        std::ranges::fill(refused, 0);
        break;
      }
      for (const int i : positive) {
        if (next[i] <= 0 && x[i] <= 1e-14 * std::abs(next[i])) {
          x[i] = 0;
          is_positive[i] = 0;
        }
      }
    }
  }
  return x;
}

std::vector<double> LeastSquares::covariance(std::span<const double> x) const {
  std::vector<int> positive;
  for (int i = 0; i < n_; ++i) {
    if (x[i] > 0) positive.push_back(i);
  }
  const std::vector<double> lower = factor(positive);
  std::vector<double> covariance(static_cast<std::size_t>(n_) * n_);
  for (std::size_t i = 0; i < positive.size(); ++i) {
    std::vector<double> column(positive.size());
    column[i] = 1;
    substitute(lower, column);
    for (std::size_t j = 0; j < positive.size(); ++j)
      covariance[static_cast<std::size_t>(positive[j]) * n_ + positive[i]] = column[j];
  }
  return covariance;
}

}  // namespace perseus::calibration
