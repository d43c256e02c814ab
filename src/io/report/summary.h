// The key figures of a frontier, as every report states them.
//
// Input:   a valid DAG and a frontier with at least one point.
// Output:  plain figures. Units: s, J, %. Gap at T: (least effective energy of a point no slower than T, minus the
//          bound's at T) over the bound's total energy at T; mean and largest over T from the fastest point to the
//          end of the frontier.
// Cost:    O(points log vertices + DAG).
// Source:  paper sections 3.1 and 6.2.
#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "planning/model/computation_dag.h"
#include "planning/model/default_plan.h"
#include "planning/model/frontier.h"

namespace perseus::report {

/// What one iteration costs under some plan, at its own iteration time.
struct IterationCost {
  Seconds time;
  Joules energy;
  Joules effective_energy;
};

/// The plan for a straggler with iteration time T'.
struct StragglerChoice {
  Seconds deadline;       ///< T'
  int point = 0;          ///< slowest point with time <= T', or the fastest if none is
  Joules energy;          ///< of that point while it waits for T'
  Joules all_max_energy;  ///< of everything at maximum clock while it waits for T'
  double saving_pct = 0;
};

/// Savings of one more tolerated slowdown.
struct ToleranceAdvice {
  double slowdown_pct = 0;  ///< tolerated
  int point = 0;
  double saving_pct = 0;
  double more_pct = 0;  ///< points beyond the default plan's saving
};

struct ReportSummary {
  model::DefaultRule rule;
  int default_point = 0;                    ///< the plan that runs without stragglers
  IterationCost default_plan;               ///< of that point
  IterationCost fastest;                    ///< the last point
  IterationCost all_max;                    ///< everything at maximum clock
  IterationCost min_energy;                 ///< every computation at its least effective energy
  Seconds t_min;                            ///< no plan is faster
  Seconds t_star;                           ///< slower plans need no less energy
  double saving_pct = 0;                    ///< default plan against everything at maximum clock, each at its own time
  double fastest_saving_pct = 0;            ///< the same of the fastest point
  std::vector<ToleranceAdvice> tolerances;  ///< by rising slowdown, only those that save more
  double gap_mean_pct = 0;
  double gap_max_pct = 0;
  std::optional<StragglerChoice> straggler;
};

ReportSummary summarize(const model::ComputationDag& dag, const model::Frontier& frontier,
                        std::optional<Seconds> straggler, const model::DefaultRule& rule = {});

/// Iteration time of everything at maximum clock, expected like the times of the points.
Seconds t_max_of(const model::ComputationDag& dag, const model::Frontier& frontier);

/// Index of the slowest point with time <= deadline; the fastest point's if there is none.
int point_for(const model::Frontier& frontier, Seconds deadline);

}  // namespace perseus::report
