#include "planning/planner/exponential_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/result.h"

namespace perseus::planner {
namespace {

double basis(double rate, double s) { return rate == 0 ? s : -std::expm1(-rate * s) / rate; }

struct Line {
  double offset = 0;
  double slope = 0;
  double squared_error = 0;
};

/// The best fit of offset + slope * basis(rate, s).
Line project(double rate, std::span<const double> s, std::span<const double> y) {
  const double count = static_cast<double>(s.size());
  double mean_x = 0, mean_y = 0;
  for (std::size_t k = 0; k < s.size(); ++k) {
    mean_x += basis(rate, s[k]) / count;
    mean_y += y[k] / count;
  }
  double xx = 0, xy = 0;
  for (std::size_t k = 0; k < s.size(); ++k) {
    const double dx = basis(rate, s[k]) - mean_x;
    xx += dx * dx;
    xy += dx * (y[k] - mean_y);
  }
  Line line;
  line.slope = xx > 0 ? std::min(xy / xx, 0.0) : 0.0;
  line.offset = mean_y - line.slope * mean_x;
  for (std::size_t k = 0; k < s.size(); ++k) {
    const double error = y[k] - line.offset - line.slope * basis(rate, s[k]);
    line.squared_error += error * error;
  }
  return line;
}

/// The rate with the least squared error.
double best_rate(std::span<const double> s, std::span<const double> y) {
  // Below 1e-4 the curve is a line within the precision of measurements; beyond 40 over the first gap it is a step.
  double first_gap = 1;
  for (const double at : s) {
    if (at > 0) first_gap = std::min(first_gap, at);
  }
  std::vector<double> grid = {0};
  constexpr int steps = 256;
  const double lowest = 1e-4, highest = 40 / first_gap;
  for (int k = 0; k <= steps; ++k) grid.push_back(lowest * std::pow(highest / lowest, static_cast<double>(k) / steps));

  const auto error_at = [&](double rate) { return project(rate, s, y).squared_error; };
  std::size_t best = 0;
  double least = error_at(0);
  for (std::size_t k = 1; k < grid.size(); ++k) {
    const double error = error_at(grid[k]);
    if (error < least) {
      least = error;
      best = k;
    }
  }
  if (best == 0) return 0;

  double low = grid[best - 1], high = grid[std::min(best + 1, grid.size() - 1)];
  const double golden = 0.6180339887498949;
  while (high - low > 1e-12 * high) {
    const double left = high - golden * (high - low), right = low + golden * (high - low);
    if (error_at(left) < error_at(right)) {
      high = right;
    } else {
      low = left;
    }
    if (left == right) break;
  }
  const double refined = 0.5 * (low + high);
  return error_at(refined) < least ? refined : grid[best];
}

}  // namespace

ExponentialFit::ExponentialFit(std::span<const double> times, std::span<const double> energies) {
  PERSEUS_CHECK(!times.empty() && times.size() == energies.size(), "one energy for each of at least one time");
  const auto [first, last] = std::ranges::minmax(times);
  start_ = first;
  span_ = last > first ? last - first : 1;
  std::vector<double> s;
  for (const double time : times) s.push_back((time - start_) / span_);
  double scale = 0;  // of energies, to avoid overflow and underflow of squares
  for (const double energy : energies) scale = std::max(scale, std::abs(energy));
  if (scale == 0) scale = 1;
  std::vector<double> y;
  y.reserve(energies.size());
  for (const double energy : energies) y.push_back(energy / scale);
  if (s.size() > 2) rate_ = best_rate(s, y);
  const Line line = project(rate_, s, y);
  offset_ = line.offset * scale;
  slope_ = line.slope * scale;
  mean_squared_error_ = line.squared_error / static_cast<double>(s.size()) * scale * scale;
}

double ExponentialFit::at(double time) const { return offset_ + slope_ * basis(rate_, (time - start_) / span_); }

}  // namespace perseus::planner
