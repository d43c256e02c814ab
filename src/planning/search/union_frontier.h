// The frontier of the union of several configurations' frontiers: which configuration to run at which deadline.
//
// All configurations run on the same accelerators, so that effective energies (e - P t) compare at equal iteration
// time. A configuration is chosen when a job starts; among the plans of one configuration clocks switch while it runs.
// Input:   the frontiers, each with at least one point; the blocking power of the pipeline, the same for all.
// Output:  the Pareto set of all points, slowest first, the earlier configuration first where two tie. The bound of a
//          point is the least of the configurations' bounds at its time: no plan of any of them is below it. Points
//          have no Plan: `origins` says where it is. The bound curve is empty, since the least of convex curves is not
//          convex.
// Errors:  none.
// Cost:    O(points log points + points * configurations * log vertices).
// Threads: pure.
#pragma once

#include <optional>
#include <vector>

#include "planning/model/frontier.h"

namespace perseus::search {

struct Origin {
  int configuration = 0;
  int point = 0;
};

struct UnionFrontier {
  model::Frontier frontier;
  std::vector<Origin> origins;  ///< of each point
};

UnionFrontier union_of(const std::vector<const model::Frontier*>& frontiers, Watts total_blocking_power);

/// The point that needs the least energy at its own time, of those no slower than the deadline (up to rounding); the
/// slower one of equals. Nothing: none is in time. Without a straggler nobody waits for the deadline, so that a
/// configuration whose frontier ends before it must not be charged for waiting.
std::optional<int> cheapest_in_time(const model::Frontier& frontier, Seconds deadline);

/// What the energy of any plan of any of them that is no slower than the deadline is at least, at its own time.
/// Infinite where none can be that fast.
Joules least_energy_in_time(const std::vector<const model::Frontier*>& frontiers, Watts total_blocking_power,
                            Seconds deadline);

/// Deadlines for which the union runs a plan of one configuration: from `from` on, up to the next span.
struct WinningSpan {
  Seconds from;
  int configuration = 0;
};
/// By rising deadline, neighbors of one configuration joined.
std::vector<WinningSpan> winning_spans(const UnionFrontier& all);

}  // namespace perseus::search
