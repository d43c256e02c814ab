#include "server/profiling/curve_family.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace perseus::profiling {
namespace {

// Prior of the common curve: standard deviations of height, slope and curvature in log clock; length of its smooth
// part.
constexpr double kHeight = 1, kSlope = 3, kCurvature = 3, kLength = 0.2;
// Correlation between the curves of different instructions in everything except the steps.
constexpr double kBetweenCurves = 0.8;
// Candidate hyperparameters: sizes of the smooth part, of persistent jumps, and of each clock's own step, in natural
// logarithms (0.01 is 1 %); increasing roughness. Among nearly equally likely ones the roughest is chosen:
// overconfidence is worse.
struct Shape {
  double smooth, jumps;
};
constexpr Shape kShapes[] = {{0.01, 0}, {0.05, 0}, {0.05, 0.02}, {0.05, 0.06}};
constexpr double kSteps[] = {0.0003, 0.001, 0.003, 0.01};
constexpr double kNearlyAsLikely = 1;  // in log likelihood
constexpr double kLoneStddev = 1;

// Candidate deviations of a member: in height, smoothly over clocks, with kinks, and at each clock by itself;
// increasing. Stages that run other layers differ a lot in height, somewhat smoothly, and hardly by clock: the steps
// are the hardware's. Kinks: the clock from which nothing gets faster may differ between stages.
struct Deviation {
  double height, smooth, kinks, steps;
};
constexpr Deviation kDeviations[] = {{0.0005, 0.0003, 0, 0.0002}, {0.005, 0.002, 0, 0.0005}, {0.1, 0.003, 0, 0.0003},
                                     {0.1, 0.01, 0, 0.001},       {0.1, 0.01, 0.01, 0.001},  {0.3, 0.02, 0.02, 0.001},
                                     {0.3, 0.03, 0.03, 0.003},    {0.5, 0.05, 0.05, 0.02}};
constexpr int kFirstDeviation = 1;
constexpr double kWorthKinks = 0.5;  // in log likelihood: noise resembles kinks
constexpr double kDeviationLength = 0.3, kDeviationBetweenCurves = 0.7;

double exponential(double distance, double length) { return std::exp(-std::abs(distance) / length); }

double matern(double distance, double length) {
  const double r = std::sqrt(3.0) * std::abs(distance) / length;
  return (1 + r) * std::exp(-r);
}

Matrix common_prior(const std::vector<CurvePosition>& positions, const Shape& shape, double steps) {
  const int n = static_cast<int>(positions.size());
  Matrix prior(n, n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const CurvePosition &a = positions[i], &b = positions[j];
      if (a.curve == kLone || b.curve == kLone) {
        prior(i, j) = i == j ? kLoneStddev * kLoneStddev : 0;
        continue;
      }
      const double u = a.log_clock, v = b.log_clock;
      const double covariance = kHeight * kHeight + kSlope * kSlope * u * v + kCurvature * kCurvature * u * u * v * v +
                                shape.smooth * shape.smooth * matern(u - v, kLength) +
                                shape.jumps * shape.jumps * exponential(u - v, kLength);
      prior(i, j) = covariance * (a.curve == b.curve ? 1 : kBetweenCurves) + (i == j ? steps * steps : 0);
    }
  }
  return prior;
}

Matrix deviation_prior(const std::vector<CurvePosition>& positions, const Deviation& size) {
  const int n = static_cast<int>(positions.size());
  Matrix prior(n, n);
  const double height = size.height * size.height;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const CurvePosition &a = positions[i], &b = positions[j];
      if (a.curve == kLone || b.curve == kLone) continue;
      if (a.curve != b.curve) {
        prior(i, j) = kDeviationBetweenCurves * height;
        continue;
      }
      const double distance = a.log_clock - b.log_clock;
      prior(i, j) = height + size.smooth * size.smooth * matern(distance, kDeviationLength) +
                    size.kinks * size.kinks * exponential(distance, kDeviationLength) +
                    (i == j ? size.steps * size.steps : 0);
    }
  }
  return prior;
}

}  // namespace

double uniform(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1p-53; }

double standard_normal(std::mt19937_64& engine) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(engine)));
  return radius * std::cos(2 * std::numbers::pi * uniform(engine));
}

CurveFamily::CurveFamily(std::vector<CurvePosition> positions, std::vector<Observations> members)
    : positions_(std::move(positions)) {
  for (const Deviation& size : kDeviations) deviations_.push_back(deviation_prior(positions_, size));
  for (Observations& observations : members) members_.push_back({std::move(observations), kFirstDeviation, {}, {}});
  fit();
  condition();
}

CurveFamily::Evidence CurveFamily::evidence_of(const Observations& observations, int deviation) const {
  const int n = static_cast<int>(positions_.size()), rows = observations.design.rows();
  Evidence evidence{Matrix(n, n), std::vector<double>(n), 0};
  if (rows == 0) return evidence;
  const Matrix spread = product(observations.design, deviations_[deviation]);
  Matrix covariance = product(observations.design, transposed(spread));
  for (int i = 0; i < rows; ++i) covariance(i, i) += observations.variance[i];
  const Cholesky factor(std::move(covariance));
  const Matrix whitened = factor.solve_lower(observations.design);
  const std::vector<double> value = factor.solve_lower(observations.value);
  evidence.information = transposed_product(whitened, whitened);
  evidence.weighted = transposed_product(whitened, value);
  evidence.log_likelihood = -0.5 * (dot(value, value) + factor.log_determinant());
  return evidence;
}

double CurveFamily::log_likelihood(const Matrix& prior_lower) const {
  const int n = static_cast<int>(positions_.size());
  Matrix information(n, n);
  std::vector<double> weighted(n);
  double sum = 0;
  for (const Member& member : members_) {
    Evidence& evidence = member.tried[member.deviation];
    if (evidence.weighted.empty()) evidence = evidence_of(member.observations, member.deviation);
    add(information, 1, evidence.information);
    for (int i = 0; i < n; ++i) weighted[i] += evidence.weighted[i];
    sum += evidence.log_likelihood;
  }
  Matrix inner = transposed_product(prior_lower, product(information, prior_lower));
  for (int i = 0; i < n; ++i) inner(i, i) += 1;
  const Cholesky factor(std::move(inner));
  const std::vector<double> shrunk = factor.solve_lower(transposed_product(prior_lower, weighted));
  return sum + 0.5 * (dot(shrunk, shrunk) - factor.log_determinant());
}

void CurveFamily::fit() {
  for (Member& member : members_) member.tried.resize(deviations_.size());
  double best = -INFINITY;
  const auto fit_common = [&] {
    struct Tried {
      double likelihood;
      Matrix lower;
    };
    std::vector<Tried> tried;
    best = -INFINITY;
    for (const Shape& shape : kShapes) {
      for (const double steps : kSteps) {
        Matrix lower = Cholesky(common_prior(positions_, shape, steps)).lower();
        const double likelihood = log_likelihood(lower);
        best = std::max(best, likelihood);
        tried.push_back({likelihood, std::move(lower)});
      }
    }
    for (Tried& one : tried) {
      if (one.likelihood < best - kNearlyAsLikely) continue;
      log_likelihood_ = one.likelihood;
      prior_lower_ = std::move(one.lower);
    }
    best = log_likelihood_;
  };
  fit_common();
  if (members_.size() > 1) {
    for (Member& member : members_) {
      if (member.observations.design.rows() == 0) continue;
      const auto try_deviation = [&](int deviation) {
        if (deviation < 0 || deviation >= static_cast<int>(deviations_.size())) return false;
        const int before = std::exchange(member.deviation, deviation);
        const double likelihood = log_likelihood(prior_lower_);
        const bool new_kinks = kDeviations[deviation].kinks > 0 && kDeviations[before].kinks == 0;
        if (likelihood <= best + (new_kinks ? kWorthKinks : 0)) {
          member.deviation = before;
          return false;
        }
        best = likelihood;
        return true;
      };
      // Step by step while the likelihood increases: up, or otherwise down.
      const int first = member.deviation;
      while (try_deviation(member.deviation + 1)) {}
      while (member.deviation <= first && try_deviation(member.deviation - 1)) {}
    }
    fit_common();
  }
  for (Member& member : members_) {
    member.evidence = std::move(member.tried[member.deviation]);
    member.tried.clear();
  }
}

void CurveFamily::condition() {
  const int n = static_cast<int>(positions_.size());
  Matrix information(n, n);
  std::vector<double> weighted(n);
  for (const Member& member : members_) {
    add(information, 1, member.evidence.information);
    for (int i = 0; i < n; ++i) weighted[i] += member.evidence.weighted[i];
  }
  Matrix inner = transposed_product(prior_lower_, product(information, prior_lower_));
  for (int i = 0; i < n; ++i) inner(i, i) += 1;
  common_root_ = Cholesky(std::move(inner)).solve_lower(transposed(prior_lower_));
  common_mean_ = transposed_product(common_root_, product(common_root_, weighted));
}

Matrix CurveFamily::covariance(int member) const {
  const int n = static_cast<int>(positions_.size());
  const Matrix& deviation = deviations_[members_[member].deviation];
  const Matrix gain = product(deviation, members_[member].evidence.information);  // D M
  Matrix root = common_root_;  // of (I - D M) S (I - D M)', row by row: root (I - D M)'
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) root(i, j) -= dot(common_root_.row(i), gain.row(j));
  }
  Matrix covariance = transposed_product(root, root);
  add(covariance, 1, deviation);
  add(covariance, -1, product(gain, deviation));
  return covariance;
}

CurveFamily::Posterior CurveFamily::posterior(int member) const {
  const Evidence& evidence = members_[member].evidence;
  std::vector<double> rest = product(evidence.information, common_mean_);
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = evidence.weighted[i] - rest[i];
  std::vector<double> mean = product(deviations_[members_[member].deviation], rest);
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += common_mean_[i];
  return {std::move(mean), covariance(member)};
}

std::vector<std::vector<std::vector<double>>> CurveFamily::draws(int count, std::mt19937_64& engine) const {
  const int n = static_cast<int>(positions_.size());
  const auto noise = [&] {
    std::vector<double> values(n);
    for (double& value : values) value = standard_normal(engine);
    return values;
  };
  std::vector<std::vector<double>> common;
  for (int k = 0; k < count; ++k) {
    common.push_back(transposed_product(common_root_, noise()));
    for (int i = 0; i < n; ++i) common.back()[i] += common_mean_[i];
  }
  std::vector<std::vector<std::vector<double>>> draws(count);
  for (const Member& member : members_) {
    const Matrix& deviation = deviations_[member.deviation];
    Matrix left = deviation;
    add(left, -1, product(deviation, product(member.evidence.information, deviation)));
    const Matrix root = Cholesky(std::move(left)).lower();
    for (int k = 0; k < count; ++k) {
      std::vector<double> rest = product(member.evidence.information, common[k]);
      for (int i = 0; i < n; ++i) rest[i] = member.evidence.weighted[i] - rest[i];
      std::vector<double> values = product(deviation, rest);
      const std::vector<double> own = product(root, noise());
      for (int i = 0; i < n; ++i) values[i] += common[k][i] + own[i];
      draws[k].push_back(std::move(values));
    }
  }
  return draws;
}

void CurveFamily::replace(int member, Observations observations) {
  members_[member].observations = std::move(observations);
  members_[member].evidence = evidence_of(members_[member].observations, members_[member].deviation);
  condition();
}

}  // namespace perseus::profiling
