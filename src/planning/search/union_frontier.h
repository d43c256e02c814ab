// The frontier of the union of several configurations' frontiers: the configuration to run at each deadline.
//
// Problem: all configurations run on the same accelerators, so that effective energies (e - P t) compare at equal
//          iteration time. The configuration is fixed when a job starts; a running job switches only between the plans
//          of its configuration.
// Input:   the frontiers, each with at least one point; the blocking power of the pipeline, the same for all.
// Output:  the Pareto set of all points, slowest first; of equal points, that of the earlier configuration. The bound
//          of a point is the least of the configurations' bounds at its time: no plan of any of them is below it.
//          Points have no Plan: `origins` refers to it. The bound curve is empty, since the minimum of convex curves
//          is not convex.
// Errors:  none.
// Cost:    O(points log points + points * configurations * log vertices).
// Threads: pure functions.
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

/// The point of least energy at its own time, of those no slower than the deadline (up to rounding); the slower of
/// equal ones; nullopt if all are slower. Without a straggler no pipeline waits for the deadline, so a configuration
/// whose frontier ends before it pays no energy for waiting.
std::optional<int> cheapest_in_time(const model::Frontier& frontier, Seconds deadline);

/// Lower bound on the energy, at its own time, of any plan of any configuration that is no slower than the deadline;
/// infinite if no plan is that fast.
Joules least_energy_in_time(const std::vector<const model::Frontier*>& frontiers, Watts total_blocking_power,
                            Seconds deadline);

/// Range of deadlines for which the union runs plans of one configuration: from `from` up to the next span.
struct WinningSpan {
  Seconds from;
  int configuration = 0;
};
/// The spans by rising deadline; adjacent spans of one configuration are joined.
std::vector<WinningSpan> winning_spans(const UnionFrontier& all);

}  // namespace perseus::search
