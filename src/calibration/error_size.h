// Typical sizes of a list of errors: its median and the mean of its absolute values.
//
// Input:   a list that is not empty.
// Errors:  none.
// Cost:    O(n log n) and O(n).
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace perseus {

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

inline double mean_absolute(const std::vector<double>& errors) {
  double sum = 0;
  for (const double e : errors) sum += std::abs(e);
  return sum / static_cast<double>(errors.size());
}

}  // namespace perseus
