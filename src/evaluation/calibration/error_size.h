// Sizes of lists of errors: the mean absolute value, and whether one list is clearly smaller than another.
//
// Input:   lists that are not empty; two lists that are compared have the errors of the same runs.
// Cost:    O(n).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace perseus::calibration {

inline double mean_absolute(const std::vector<double>& errors) {
  double sum = 0;
  for (const double e : errors) sum += std::abs(e);
  return sum / static_cast<double>(errors.size());
}

/// A more detailed model must reduce the left-out errors at least to this share.
constexpr double kClearGain = 0.95;

/// Whether `errors` are smaller than `others` by 5 % and by more than the standard error of the difference.
inline bool clearly_smaller(const std::vector<double>& errors, const std::vector<double>& others) {
  const auto n = static_cast<double>(errors.size());
  double mean = 0, squares = 0;
  for (std::size_t p = 0; p < errors.size(); ++p) {
    const double gain = std::abs(others[p]) - std::abs(errors[p]);
    mean += gain / n;
    squares += gain * gain / n;
  }
  const double standard_error = std::sqrt(std::max(0.0, squares - mean * mean) / std::max(1.0, n - 1));
  return mean > standard_error && mean_absolute(errors) < kClearGain * mean_absolute(others);
}

}  // namespace perseus::calibration
