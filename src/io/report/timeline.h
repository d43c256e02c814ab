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

/// A timeline at low resolution: one iteration divided into equal columns of time, one row per rank.
/// Problem: 65,536 bars do not fit on 1,000 pixels or 100 characters.
/// Input:   a timeline, the time span of the columns, their number.
/// Output:  per rank and column, the busy share, the mean power while busy, and whether the marked critical path
///          passes.
struct TimelineColumn {
  double busy = 0;  ///< 0..1
  Watts power;      ///< mean while busy
  bool critical = false;
};

/// [rank][column]
std::vector<std::vector<TimelineColumn>> columns_of(const model::ComputationDag& dag, const Timeline& timeline,
                                                    Seconds span, int columns);

/// The transfers of an iteration that take much longer than its other transfers: a timeline marks them.
/// Input:   a valid ComputationDag.
/// Output:  the dependencies between two ranks whose latency is above three times the median of all such dependencies,
///          grouped by sending and receiving rank; empty if all links are alike. The pages mark the same ones
///          (web/src/iteration.js).
struct SlowLink {
  int from = 0;  ///< rank
  int to = 0;
  Seconds latency;                                ///< the longest of its transfers
  std::vector<model::Dependency> transfers = {};  ///< in the DAG's order
};

std::vector<SlowLink> slow_links(const model::ComputationDag& dag);

/// Standard deviations of a plan's time and energy, from the profile's spread.
/// Problem: measurements have a spread, which propagates to the iteration. The error of one measurement, (type,
///          option), is the same wherever the plan uses it, and different measurements are independent. By first-order
///          propagation, time varies with the computations of the critical path, and eq. (1) with every energy and,
///          through the change in waiting, with every time.
/// Input:   a valid DAG, a plan that fits it and its timeline.
/// Output:  one standard deviation of time and energy, 0 if the profile has no spread. Changes of the critical path
///          are ignored, as is everything outside the DAG.
struct ErrorBars {
  Seconds time_stddev;
  Joules energy_stddev;
};

/// True if some option has a spread.
bool has_spread(const model::ComputationDag& dag);
ErrorBars error_bars_of(const model::ComputationDag& dag, const model::Plan& plan, const Timeline& timeline);

}  // namespace perseus::report
