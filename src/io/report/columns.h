// A timeline at low resolution: one iteration divided into equal columns of time, one row per rank.
//
// Problem: 65,536 bars do not fit on 1,000 pixels or 100 characters.
// Input:   a timeline, the time span of the columns, their number.
// Output:  per rank and column, the busy share, the mean power while busy, and whether the marked critical path
//          passes.
// Cost:    O(bars + ranks * columns + columns that bars cover).
#pragma once

#include <vector>

#include "io/report/timeline.h"

namespace perseus::report {

struct TimelineColumn {
  double busy = 0;  ///< 0..1
  Watts power;      ///< mean while busy
  bool critical = false;
};

/// [rank][column]
std::vector<std::vector<TimelineColumn>> columns_of(const model::ComputationDag& dag, const Timeline& timeline,
                                                    Seconds span, int columns);

}  // namespace perseus::report
