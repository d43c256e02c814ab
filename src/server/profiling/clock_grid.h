// The clocks over which the types of one instruction share curves: all that any of them supports, highest first.
//
// Input:   a layout.
// Output:  a grid per instruction with a clock, in the order of the first types; per type its place in it.
// Errors:  none.
// Cost:    O(types * clocks^2).
// Threads: plain value.
#pragma once

#include <vector>

#include "server/profiling/curve_family.h"
#include "server/profiling/layout.h"

namespace perseus::profiling {

struct ClockGrid {
  std::vector<Megahertz> clocks;
  std::vector<int> types;
  /// Of a curve with that number over all clocks.
  [[nodiscard]] std::vector<CurvePosition> positions(int curve) const;
};

struct PlaceInGrid {
  int grid = -1;               ///< -1: the type has no clock
  int member = 0;              ///< its index among the grid's types
  std::vector<int> positions;  ///< of its clocks
};

struct ClockGrids {
  std::vector<ClockGrid> grids;
  std::vector<PlaceInGrid> places;              ///< per type
  std::vector<std::vector<int>> types_of_rank;  ///< those with a clock

  explicit ClockGrids(const Layout& layout);
};

}  // namespace perseus::profiling
