// The values that are plausible for a computation at a clock, given earlier ones.
//
// Problem: a value that is far from what is known is an outlier; but clocks differ, and at first nothing is known.
// Input:   the cells of a type, the noise of a value, the same instruction in other stages; without cells, values to
//          learn from.
// Output:  per clock a range: around the mean there, around that of other stages, around the value at the nearest known
//          clock as wide as the clock may change it, or around a quadratic through the learned values.
// Errors:  none; a type without cells must have learned a value.
// Cost:    O(clocks) per range.
// Threads: const functions are pure.
#pragma once

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/linear_algebra.h"
#include "server/profiling/layout.h"
#include "server/profiling/samples.h"

namespace perseus::profiling {

/// Samples of a clock that suffice to compare others with.
inline constexpr int kEnoughRepeats = 4;

class Expectation {
 public:
  /// By clock, the same instruction's means in other stages, each scaled to this stage.
  using Siblings = std::map<Megahertz, Running>;
  Expectation(const ProfiledType& type, const std::vector<Cell>& cells, Running Cell::*quantity, double noise,
              Siblings siblings);
  [[nodiscard]] bool has_history() const { return has_history_; }
  void learn(int clock, double value);
  /// Call it after the last learn().
  void learned();

  struct Range {
    double middle, tolerance;
    bool of_this_clock = false;  ///< from samples of this type at this clock; else assumed
    [[nodiscard]] bool contains(double value) const { return std::abs(value - middle) <= tolerance; }
  };
  [[nodiscard]] Range at(int clock) const;

 private:
  struct Point {
    double x, y;
  };
  void fit(const std::vector<Point>& points);
  [[nodiscard]] double curve_at(double x) const;
  [[nodiscard]] Range from_nearest(int clock, double tolerance) const;

  const ProfiledType& type_;
  const std::vector<Cell>& cells_;
  Running Cell::*quantity_;
  double noise_;
  Siblings siblings_;
  std::vector<Point> points_;  ///< learned: log clock, value
  Vector coefficients_;        ///< of the quadratic through them
  bool has_history_ = false;
};

}  // namespace perseus::profiling
