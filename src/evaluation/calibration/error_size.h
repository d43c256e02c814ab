// Mean absolute value of a list of errors.
//
// Input:   a list that is not empty.
// Errors:  none.
// Cost:    O(n).
// Threads: pure functions.
#pragma once

#include <cmath>
#include <vector>

namespace perseus::calibration {

inline double mean_absolute(const std::vector<double>& errors) {
  double sum = 0;
  for (const double e : errors) sum += std::abs(e);
  return sum / static_cast<double>(errors.size());
}

}  // namespace perseus::calibration
