// Figures of each point of a frontier: one table of columns that defines both frontier.csv and --json.
//
// Input:   the DAG, a frontier of at least one point.
// Output:  figures per point, and the columns with their names (units in the suffix). Clock changes are counted per
//          iteration over all ranks, the shortest dwell is the shortest over all ranks, both by the plan checker.
// Cost:    one simulation per point.
#pragma once

#include <string>
#include <vector>

#include "command_line/records.h"
#include "io/report/timeline.h"
#include "planning/checker/clock_changes.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::cli {

struct PointFigures {
  int point = 0;
  Seconds time;
  Joules energy;
  Joules effective_energy;
  Joules bound;
  double gap_pct = 0;
  Watts average_power;      ///< of all accelerators together
  double saving_pct = 0;    ///< energy against all computations at maximum clock, each at its own time
  double slowdown_pct = 0;  ///< time against all computations at maximum clock; negative: faster
  Joules clock_limit_cost;  ///< energy cost of switch latency and dwell, 0 without them
  int clock_changes = 0;
  Seconds shortest_dwell;
  report::ErrorBars error_bars;  ///< 0 where the profile has no spread
  Seconds lateness;              ///< expected excess over `time`, which holds for the means of a noisy profile
  std::vector<checker::ClockChanges> per_rank;
};

std::vector<PointFigures> figures_of(const model::ComputationDag& dag, const model::Frontier& frontier,
                                     Seconds switch_latency);

/// Slowest first.
Table points_of(const std::vector<PointFigures>& figures);

}  // namespace perseus::cli
