// The median of a list of numbers, with the three usual rules for an even count.
//
// Input:   at least one value, in any order.
// Output:  for an even count: median() returns the mean of the two middle values, upper_median() and lower_median() the
//          greater and the lesser of them.
// Errors:  none; an empty list or a NaN is a programming error.
// Cost:    O(n) on average.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace perseus {

/// Standard deviation of a normal distribution divided by its median absolute deviation.
inline constexpr double kStddevPerMedianDistance = 1.4826;

template <class T>
T upper_median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class T>
T lower_median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace perseus
