#include "training/client/power_model.h"

#include <algorithm>
#include <cmath>

namespace perseus::client {
namespace {

// Priors of a power curve before any measurement (W): size per coefficient, slope from one to the next, and bend.
constexpr double kSize_w = 1000, kSlope_w = 100, kBend_w = 25;

/// An edge's error affects both intervals beside it, with opposite signs. Variances are then up to twice those of
/// independent errors.
constexpr double kNeighbors = 2;

}  // namespace

PowerModel::PowerModel(int kinds, int lowest_mhz, int highest_mhz)
    : lowest_(lowest_mhz),
      span_(std::max(highest_mhz - lowest_mhz, 1)),
      size_(static_cast<std::size_t>(kinds) * kBends),
      precision_(size_ * size_),
      moment_(size_),
      seen_s_(static_cast<std::size_t>(kinds)) {
  const auto add = [&](std::size_t at, const std::vector<double>& terms, double stddev) {
    for (std::size_t i = 0; i < terms.size(); ++i) {
      for (std::size_t j = 0; j < terms.size(); ++j) {
        precision_[(at + i) * size_ + at + j] += terms[i] * terms[j] / (stddev * stddev);
      }
    }
  };
  for (std::size_t kind = 0; kind < static_cast<std::size_t>(kinds); ++kind) {
    for (std::size_t i = 0; i < kBends; ++i) {
      add(kind * kBends + i, {1}, kSize_w);
      if (i + 1 < kBends) add(kind * kBends + i, {-1, 1}, kSlope_w);
      if (i + 2 < kBends) add(kind * kBends + i, {1, -2, 1}, kBend_w);
    }
  }
}

/// The nonzero quadratic B-splines at that clock.
PowerModel::Place PowerModel::place_of(int clock_mhz) const {
  constexpr double sections = kBends - 2;
  const double x = std::clamp((clock_mhz - lowest_) / span_, 0.0, 1.0) * sections;
  const double section = std::min(std::floor(x), sections - 1);
  const double t = x - section;
  return {static_cast<std::size_t>(section), {(1 - t) * (1 - t) / 2, 0.5 + t - t * t, t * t / 2}};
}

void PowerModel::add(std::span<const WorkPiece> interval, double energy_j, double stddev_j) {
  std::vector<std::pair<std::size_t, double>> row;  // coefficient, seconds over deviation
  for (const WorkPiece& piece : interval) {
    const Place place = place_of(piece.clock_mhz);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t at = static_cast<std::size_t>(piece.kind) * kBends + place.first + i;
      const double term = piece.seconds * place.weight[i] / stddev_j;
      const auto known = std::ranges::find(row, at, &std::pair<std::size_t, double>::first);
      if (known != row.end()) {
        known->second += term;
      } else {
        row.emplace_back(at, term);
      }
    }
    seen_s_[static_cast<std::size_t>(piece.kind)] += piece.seconds;
  }
  const double energy = energy_j / stddev_j;
  for (const auto& [i, term] : row) {
    for (const auto& [j, other] : row) precision_[i * size_ + j] += term * other;
    moment_[i] += term * energy;
  }
  energy_squares_ += energy * energy;
  ++intervals_;
  solved_ = false;
}

void PowerModel::solve() const {
  if (solved_) return;
  factor_ = precision_;
  for (std::size_t j = 0; j < size_; ++j) {
    double* const row_j = &factor_[j * size_];
    for (std::size_t i = j; i < size_; ++i) {
      double* const row_i = &factor_[i * size_];
      double sum = row_i[j];
      for (std::size_t k = 0; k < j; ++k) sum -= row_i[k] * row_j[k];
      row_i[j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / row_j[j];
    }
  }
  mean_ = moment_;
  for (std::size_t i = 0; i < size_; ++i) {
    for (std::size_t k = 0; k < i; ++k) mean_[i] -= factor_[i * size_ + k] * mean_[k];
    mean_[i] /= factor_[i * size_ + i];
  }
  double explained = 0;
  for (const double value : mean_) explained += value * value;
  for (std::size_t i = size_; i-- > 0;) {
    for (std::size_t k = i + 1; k < size_; ++k) mean_[i] -= factor_[k * size_ + i] * mean_[k];
    mean_[i] /= factor_[i * size_ + i];
  }
  noise_ = kNeighbors * std::max(1.0, (energy_squares_ - explained) / std::max(intervals_, 1));
  solved_ = true;
  solved_intervals_ = intervals_;
}

double PowerModel::rough_power_w(int kind, int clock_mhz) const {
  if (10 * (intervals_ - solved_intervals_) > intervals_) solve();
  const Place place = place_of(clock_mhz);
  const std::size_t first = static_cast<std::size_t>(kind) * kBends + place.first;
  double power = 0;
  for (std::size_t i = 0; i < 3; ++i) power += place.weight[i] * mean_[first + i];
  return power;
}

PowerEstimate PowerModel::power(int kind, int clock_mhz) const {
  solve();
  const Place place = place_of(clock_mhz);
  const std::size_t first = static_cast<std::size_t>(kind) * kBends + place.first;
  PowerEstimate estimate;
  // The variance is the squared length of the solution x of factor x = weights.
  std::vector<double> x(size_);
  double variance = 0;
  for (std::size_t i = first; i < size_; ++i) {
    double sum = i < first + 3 ? place.weight[i - first] : 0;
    for (std::size_t k = first; k < i; ++k) sum -= factor_[i * size_ + k] * x[k];
    x[i] = sum / factor_[i * size_ + i];
    variance += x[i] * x[i];
    if (i < first + 3) estimate.power_w += place.weight[i - first] * mean_[i];
  }
  estimate.stddev_w = std::sqrt(variance * noise_);
  return estimate;
}

}  // namespace perseus::client
