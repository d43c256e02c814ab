#include "evaluation/calibration/least_squares.h"

namespace perseus::calibration {
namespace {

template <class Condition>
std::vector<int> indices_where(Eigen::Index n, const Condition& condition) {
  std::vector<int> result;
  for (int i = 0; i < n; ++i) {
    if (condition(i)) result.push_back(i);
  }
  return result;
}

}  // namespace

LeastSquares::LeastSquares(int unknowns) : normal_(Matrix::Zero(unknowns, unknowns)), target_(Vector::Zero(unknowns)) {}

void LeastSquares::add(std::span<const Term> terms, double target, double weight) {
  const double w2 = weight * weight;
  for (const Term& a : terms) {
    target_[a.unknown] += w2 * a.coefficient * target;
    for (const Term& b : terms) normal_(a.unknown, b.unknown) += w2 * a.coefficient * b.coefficient;
  }
}

bool LeastSquares::is_finite() const { return normal_.allFinite() && target_.allFinite(); }

std::vector<double> LeastSquares::solve() const {
  if (!is_finite()) return std::vector<double>(target_.size());
  return as_list(NormalEquations(normal_).solve(target_));
}

Vector LeastSquares::solve(const std::vector<int>& unknowns) const {
  Vector x = Vector::Zero(target_.size());
  x(unknowns) = NormalEquations(normal_(unknowns, unknowns)).solve(target_(unknowns));
  return x;
}

/// The candidate whose growth from 0 gains the most; -1: none gains anything.
int LeastSquares::entering(const Vector& x, const std::vector<State>& states) const {
  const Vector slope = target_ - normal_ * x;
  int best = -1;
  double steepest = 0;
  for (int i = 0; i < x.size(); ++i) {
    if (states[i] != State::zero || normal_(i, i) <= 0) continue;
    const double unit = std::sqrt(normal_(i, i));  // the gain is then invariant under scaling of the unknown
    if (slope[i] / unit <= std::max(steepest, 1e-11 * std::abs(target_[i]) / unit)) continue;
    steepest = slope[i] / unit;
    best = i;
  }
  return best;
}

std::vector<double> LeastSquares::solve_non_negative() const {
  const Eigen::Index n = target_.size();
  Vector x = Vector::Zero(n);
  if (!is_finite()) return as_list(x);
  std::vector<State> states(n, State::zero);
  for (int round = 0; round < 10 * n; ++round) {
    const int entered = entering(x, states);
    if (entered == -1) break;
    states[entered] = State::positive;
    for (bool stepped = false;; stepped = true) {
      const std::vector<int> positive = indices_where(n, [&](int i) { return states[i] == State::positive; });
      const Vector next = solve(positive);
      if (!stepped && next[entered] <= 0) {  // rounding errors made the gain appear
        states[entered] = State::refused;
        break;
      }
      double share = 1;
      for (const int i : positive) {
        if (next[i] <= 0) share = std::min(share, x[i] / (x[i] - next[i]));
      }
      for (const int i : positive) x[i] += share * (next[i] - x[i]);
      if (share == 1) {
        std::ranges::replace(states, State::refused, State::zero);
        break;
      }
      for (const int i : positive) {
        if (next[i] > 0 || x[i] > 1e-14 * std::abs(next[i])) continue;
        x[i] = 0;
        states[i] = State::zero;
      }
    }
  }
  return as_list(x);
}

Matrix LeastSquares::covariance(std::span<const double> x) const {
  const Eigen::Index n = target_.size();
  const std::vector<int> positive = indices_where(n, [&](int i) { return x[i] > 0; });
  Matrix result = Matrix::Zero(n, n);
  if (!is_finite()) return result;
  result(positive, positive) = NormalEquations(normal_(positive, positive)).covariance();
  return result;
}

}  // namespace perseus::calibration
