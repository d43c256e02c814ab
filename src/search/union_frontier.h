// The frontier of the union of several configurations' frontiers: which configuration to run at which deadline.
//
// All configurations run on the same accelerators, so that effective energies (e - P t) compare at equal iteration
// time. A configuration is chosen when a job starts; among the plans of one configuration clocks switch while it runs.
// Input:   the frontiers, each with at least one point; the blocking power of the pipeline, the same for all.
// Output:  the Pareto set of all points, slowest first, the earlier configuration first where two tie. A point's bound
// is
//          the least of the configurations' bounds at its time: no plan of any of them is below it. Points have no
//          Plan: `origins` says where it is. The bound curve is empty, since the least of convex curves is not convex.
// Errors:  none.
// Cost:    O(points log points + points * configurations * log vertices).
// Threads: pure.
#pragma once

#include <vector>

#include "model/frontier.h"

namespace perseus::search {

struct Origin {
  int configuration = 0;
  int point = 0;
};

struct UnionFrontier {
  Frontier frontier;
  std::vector<Origin> origins;  ///< of each point
};

UnionFrontier union_of(const std::vector<const Frontier*>& frontiers, Watts total_blocking_power);

/// Deadlines for which the union runs a plan of one configuration: from `from` on, up to the next span.
struct WinningSpan {
  Seconds from;
  int configuration = 0;
};
/// By rising deadline, neighbors of one configuration joined.
std::vector<WinningSpan> winning_spans(const UnionFrontier& all);

}  // namespace perseus::search
