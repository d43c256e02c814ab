// The timeline of one iteration under a plan: when each computation runs, its power, and the critical path.
//
// Input:   a valid ComputationDag and one option index per computation.
// Output:  one bar per computation in the DAG's order: earliest start, slack (how much later it could start without a
//          longer iteration) and whether it lies on the marked critical path: one longest path, preferring to stay on
//          a rank where several are equally long. Units: s, J, W of a whole rank.
// Errors:  none for a plan that fits its DAG (checked).
// Cost:    O(computations + dependencies).
// Source:  paper sections 3.1 and 4.1, eq. (1).
#pragma once

#include <vector>

#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/reference_plans.h"

namespace perseus::report {

struct TimelineBar {
  Seconds start;
  Seconds end;
  Seconds slack;
  Joules energy;
  Watts power;  ///< mean over the bar
  bool critical = false;
};

struct Timeline {
  std::vector<TimelineBar> bars;
  std::vector<int> critical_path;  ///< computations, first to last
  Seconds makespan;
  Joules energy;            ///< eq. (1) with T' = makespan
  Joules effective_energy;  ///< sum of e - P t
};

Timeline timeline_of(const model::ComputationDag& dag, const model::Plan& plan);

/// The powers that colors stand for: from that of a waiting rank to the highest of any bar.
struct PowerRange {
  Watts low;
  Watts high;
  /// 0 at `low`, 1 at `high`, clamped; 0 if the range is empty.
  [[nodiscard]] double position(Watts power) const;
  /// The smallest range that holds both.
  [[nodiscard]] PowerRange joined(PowerRange other) const;
};
PowerRange power_range_of(const model::ComputationDag& dag, const Timeline& timeline);

}  // namespace perseus::report
