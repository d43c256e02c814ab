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
// Rare steps: this share of clocks differs from its neighbors by so much, where a kernel or a memory clock changes.
constexpr double kRareShare = 0.02, kRareStep = 0.02;

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
  Matrix prior = Matrix::Zero(n, n);
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
  Matrix prior = Matrix::Zero(n, n);
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

CurveFamily::CurveFamily(std::vector<CurvePosition> positions, std::vector<Observations> members, RareSteps rare)
    : positions_(std::move(positions)) {
  for (const Deviation& size : kDeviations) deviations_.push_back(deviation_prior(positions_, size));
  for (Observations& observations : members) members_.push_back({std::move(observations), kFirstDeviation, {}, {}});
  fit();
  condition();
  if (rare == RareSteps::possible) find_steps();
}

CurveFamily::Evidence CurveFamily::evidence_of(const Observations& observations, int deviation) const {
  const auto n = static_cast<Eigen::Index>(positions_.size());
  const Matrix& design = observations.design;
  Evidence none{Matrix::Zero(n, n), Vector::Zero(n), 0};
  if (design.rows() == 0) return none;
  Matrix covariance = design * deviations_[deviation] * design.transpose();
  covariance.diagonal() += as_vector(observations.variance);
  // Values beyond a double's range determine nothing.
  if (!covariance.allFinite() || !design.allFinite() || !as_vector(observations.value).allFinite()) return none;
  const Cholesky factor(std::move(covariance));
  const Matrix whitened = factor.solve_lower(design);
  const Vector value = factor.solve_lower(as_vector(observations.value));
  return {whitened.transpose() * whitened, whitened.transpose() * value,
          -0.5 * (value.squaredNorm() + factor.log_determinant())};
}

/// Information about the common curve in units of its prior, prior included.
Cholesky CurveFamily::whitened_information(const Matrix& prior_lower, const Matrix& information) {
  Matrix inner = prior_lower.transpose() * information * prior_lower;
  inner.diagonal().array() += 1;
  return Cholesky(std::move(inner));
}

double CurveFamily::log_likelihood(const Matrix& prior_lower) const {
  const auto n = static_cast<Eigen::Index>(positions_.size());
  Matrix information = Matrix::Zero(n, n);
  Vector weighted = Vector::Zero(n);
  double sum = 0;
  for (const Member& member : members_) {
    Evidence& evidence = member.tried[member.deviation];
    if (evidence.weighted.size() == 0) evidence = evidence_of(member.observations, member.deviation);
    information += evidence.information;
    weighted += evidence.weighted;
    sum += evidence.log_likelihood;
  }
  const Cholesky factor = whitened_information(prior_lower, information);
  const Vector shrunk = factor.solve_lower(prior_lower.transpose() * weighted);
  return sum + 0.5 * (shrunk.squaredNorm() - factor.log_determinant());
}

/// Chooses the common curve's prior and returns its likelihood.
double CurveFamily::fit_common() {
  struct Tried {
    double likelihood;
    Matrix lower;
  };
  std::vector<Tried> tried;
  double best = -INFINITY;
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
  return log_likelihood_;
}

/// Step by step while the likelihood increases: up, or otherwise down. Returns the new likelihood.
double CurveFamily::fit_deviation(Member& member, double likelihood) {
  const auto try_deviation = [&](int deviation) {
    if (deviation < 0 || deviation >= static_cast<int>(deviations_.size())) return false;
    const int before = std::exchange(member.deviation, deviation);
    const double tried = log_likelihood(prior_lower_);
    const bool new_kinks = kDeviations[deviation].kinks > 0 && kDeviations[before].kinks == 0;
    if (tried <= likelihood + (new_kinks ? kWorthKinks : 0)) {
      member.deviation = before;
      return false;
    }
    likelihood = tried;
    return true;
  };
  const int first = member.deviation;
  while (try_deviation(member.deviation + 1)) {}
  while (member.deviation <= first && try_deviation(member.deviation - 1)) {}
  return likelihood;
}

void CurveFamily::fit() {
  for (Member& member : members_) member.tried.resize(deviations_.size());
  double best = fit_common();
  if (members_.size() > 1) {
    for (Member& member : members_) {
      if (member.observations.design.rows() > 0) best = fit_deviation(member, best);
    }
    fit_common();
  }
  for (Member& member : members_) {
    member.evidence = std::move(member.tried[member.deviation]);
    member.tried.clear();
  }
}

void CurveFamily::condition() {
  const auto n = static_cast<Eigen::Index>(positions_.size());
  information_ = Matrix::Zero(n, n);
  weighted_ = Vector::Zero(n);
  for (const Member& member : members_) {
    information_ += member.evidence.information;
    weighted_ += member.evidence.weighted;
  }
  common_root_ = whitened_information(prior_lower_, information_).solve_lower(prior_lower_.transpose());
  common_mean_ = common_root_.transpose() * (common_root_ * weighted_);
}

/// Rare steps that are more likely than not become part of the curve, one after another; the others are drawn.
void CurveFamily::find_steps() {
  constexpr double variance_before = kRareStep * kRareStep;
  Vector mean = common_mean_;
  Matrix explained = common_root_.transpose() * (common_root_ * information_);
  std::vector<bool> found(positions_.size());
  for (;;) {
    rare_.clear();
    const Vector residual = weighted_ - information_ * mean;
    for (std::size_t k = 0; k < positions_.size(); ++k) {
      if (positions_[k].curve == kLone || found[k]) continue;
      const auto i = static_cast<Eigen::Index>(k);
      const double known = std::max(0.0, information_(i, i) - information_.col(i).dot(explained.col(i)));
      const double variance = variance_before / (1 + variance_before * known);
      const double step = variance * residual[i];
      const double log_odds = std::log(kRareShare / (1 - kRareShare)) +
                              0.5 * (step * step / variance - std::log1p(variance_before * known));
      rare_.push_back({k, log_odds, step, std::sqrt(variance)});
    }
    const auto likeliest = std::ranges::max_element(rare_, {}, &RareStep::log_odds);
    if (likeliest == rare_.end() || !(likeliest->log_odds > 0)) break;
    found[likeliest->position] = true;
    const auto i = static_cast<Eigen::Index>(likeliest->position);
    const Vector change = Vector::Unit(mean.size(), i) - explained.col(i);  // per step: the rest explains less
    mean += change * likeliest->mean;
    explained += change * (likeliest->stddev * likeliest->stddev) * (change.transpose() * information_);
  }
  if (std::ranges::find(found, true) == found.end()) return;
  Matrix prior = prior_lower_ * prior_lower_.transpose();
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (found[k]) prior(static_cast<Eigen::Index>(k), static_cast<Eigen::Index>(k)) += variance_before;
  }
  prior_lower_ = Cholesky(std::move(prior)).lower();
  condition();
}

Matrix CurveFamily::covariance(int member) const {
  const Matrix& deviation = deviations_[members_[member].deviation];
  const Matrix gain = deviation * members_[member].evidence.information;  // D M
  // (I - D M) S (I - D M)' = root' root, with the common curve's covariance S.
  const Matrix root = common_root_ - common_root_ * gain.transpose();
  return root.transpose() * root + deviation - gain * deviation;
}

CurveFamily::Posterior CurveFamily::posterior(int member) const {
  return {given_common(members_[member], common_mean_), covariance(member)};
}

/// The member's expected values if the common curve is this one.
Vector CurveFamily::given_common(const Member& member, const Vector& common) const {
  const Evidence& evidence = member.evidence;
  return common + deviations_[member.deviation] * (evidence.weighted - evidence.information * common);
}

std::vector<Matrix> CurveFamily::responses(const std::vector<Matrix>& changes) const {
  std::vector<Matrix> weighted;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const Observations& observed = members_[m].observations;
    Matrix covariance = observed.design * deviations_[members_[m].deviation] * observed.design.transpose();
    covariance.diagonal() += as_vector(observed.variance);
    // As in evidence_of(): what is beyond a double's range determines nothing.
    if (!covariance.allFinite()) {
      weighted.emplace_back(Matrix::Zero(observed.design.cols(), changes[m].cols()));
      continue;
    }
    const Cholesky factor(std::move(covariance));
    weighted.emplace_back(factor.solve_lower(observed.design).transpose() * factor.solve_lower(changes[m]));
  }
  Matrix all = weighted.front();
  for (std::size_t m = 1; m < members_.size(); ++m) all += weighted[m];
  const Matrix common = common_root_.transpose() * (common_root_ * all);
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const Member& member = members_[m];
    weighted[m] = common + deviations_[member.deviation] * (weighted[m] - member.evidence.information * common);
  }
  return weighted;
}

std::vector<std::vector<Vector>> CurveFamily::draws(int count, std::mt19937_64& engine) const {
  const auto noise = [&] {
    Vector values(static_cast<Eigen::Index>(positions_.size()));
    for (double& value : values) value = standard_normal(engine);
    return values;
  };
  std::vector<Vector> common;
  for (int k = 0; k < count; ++k) {
    Vector& drawn = common.emplace_back(common_mean_ + common_root_.transpose() * noise());
    for (const RareStep& rare : rare_) {
      if (uniform(engine) >= 1 / (1 + std::exp(-rare.log_odds))) continue;
      const auto i = static_cast<Eigen::Index>(rare.position);
      const double step = rare.mean + rare.stddev * standard_normal(engine);
      drawn[i] += step;  // the rest of the curve then explains that much less
      drawn -= common_root_.transpose() * (common_root_ * information_.col(i)) * step;
    }
  }
  std::vector<std::vector<Vector>> draws(count);
  for (const Member& member : members_) {
    const Matrix& deviation = deviations_[member.deviation];
    const Cholesky left(deviation - deviation * member.evidence.information * deviation);
    for (int k = 0; k < count; ++k) draws[k].emplace_back(given_common(member, common[k]) + left.lower() * noise());
  }
  return draws;
}

}  // namespace perseus::profiling
