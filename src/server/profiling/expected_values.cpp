#include "server/profiling/expected_values.h"

#include <Eigen/QR>
#include <algorithm>

#include "base/median.h"

namespace perseus::profiling {
namespace {

// Tolerances for outliers: in standard deviations of noise, and at least; against samples of that clock, and against
// a curve.
constexpr double kOutlierDeviations = 6, kLeastTolerance = 0.03, kSiblingTolerance = 0.06, kCurveTolerance = 0.25;
// The same among the values from which a curve is learned; fits after the first.
constexpr double kLearningDeviations = 3;
constexpr int kRobustFits = 4;
// Bounds of the exponents of the clock in time and energy.
constexpr std::pair<double, double> kTimeSlope = {-1, 0}, kEnergySlope = {-1, 2};

double log_clock(const ProfiledType& type, int clock) {
  return std::log(static_cast<double>(type.clocks[clock].value() + 1) / (type.clocks.front().value() + 1));
}

}  // namespace

Expectation::Expectation(const ProfiledType& type, const std::vector<Cell>& cells, Running Cell::*quantity,
                         double noise, Siblings siblings)
    : type_(type), cells_(cells), quantity_(quantity), noise_(noise), siblings_(std::move(siblings)) {
  has_history_ = std::ranges::any_of(cells, [&](const Cell& cell) { return (cell.*quantity).count > 0; });
}

void Expectation::learn(int clock, double value) { points_.push_back({log_clock(type_, clock), value}); }

/// The least squares fit: a quadratic, or of lower degree where there are few clocks.
void Expectation::fit(const std::vector<Point>& points) {
  std::vector<double> xs;
  for (const Point& p : points) xs.push_back(p.x);
  std::ranges::sort(xs);
  xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
  const int terms = xs.size() >= 5 ? 3 : xs.size() >= 3 ? 2 : 1;
  Matrix design(static_cast<Eigen::Index>(points.size()), terms);
  Vector values(design.rows());
  for (Eigen::Index i = 0; i < design.rows(); ++i) {
    for (int power = 0; power < terms; ++power) design(i, power) = std::pow(points[i].x, power);
    values[i] = points[i].y;
  }
  coefficients_ = design.householderQr().solve(values);
}

double Expectation::curve_at(double x) const {
  double value = 0;
  for (Eigen::Index i = coefficients_.size(); i-- > 0;) value = value * x + coefficients_[i];
  return value;
}

/// Fits, leaves out outliers of the fit, and fits again, a few times.
void Expectation::learned() {
  if (points_.empty()) return;
  fit(points_);
  for (int round = 0; round < kRobustFits; ++round) {
    std::vector<double> residuals;
    for (const Point& p : points_) residuals.push_back(std::abs(p.y - curve_at(p.x)));
    const double limit =
        std::max(kLeastTolerance, kLearningDeviations * kStddevPerMedianDistance * upper_median(residuals));
    std::vector<Point> kept;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (residuals[i] <= limit) kept.push_back(points_[i]);
    }
    fit(kept);
  }
}

Expectation::Range Expectation::at(int clock) const {
  const Running& known = cells_[clock].*quantity_;
  if (known.count >= kEnoughRepeats) {
    return {known.mean, std::max(kLeastTolerance, kOutlierDeviations * noise_), true};
  }
  const auto sibling = siblings_.find(type_.clocks[clock]);
  if (sibling != siblings_.end() && sibling->second.count >= kEnoughRepeats) {
    return {sibling->second.mean, std::max(kSiblingTolerance, 1.5 * kOutlierDeviations * noise_)};
  }
  const double tolerance = std::max(kCurveTolerance, 1.5 * kOutlierDeviations * noise_);
  if (has_history_) return from_nearest(clock, tolerance);
  return {curve_at(log_clock(type_, clock)), tolerance};
}

/// Between no change and the largest change that a clock can cause, from the nearest known clock.
Expectation::Range Expectation::from_nearest(int clock, double tolerance) const {
  const auto [least, most] = quantity_ == &Cell::log_time ? kTimeSlope : kEnergySlope;
  double nearest = INFINITY, middle = 0;
  for (int c = 0; c < static_cast<int>(cells_.size()); ++c) {
    const Running& other = cells_[c].*quantity_;
    const double apart = log_clock(type_, clock) - log_clock(type_, c);
    if (other.count == 0 || std::abs(apart) >= std::abs(nearest)) continue;
    nearest = apart;
    middle = other.mean + 0.5 * (least + most) * apart;
  }
  return {middle, tolerance + 0.5 * (most - least) * std::abs(nearest)};
}

}  // namespace perseus::profiling
