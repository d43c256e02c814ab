// Standard deviations of a plan's time and energy, from the profile's spread.
//
// Problem: measurements have a spread, which propagates to the iteration. The error of one measurement, (type,
//          option), is the same wherever the plan uses it, and different measurements are independent. By first-order
//          propagation, time varies with the computations of the critical path, and eq. (1) with every energy and,
//          through the change in waiting, with every time.
// Input:   a valid DAG, a plan that fits it and its timeline.
// Output:  one standard deviation of time and energy, 0 if the profile has no spread. Changes of the critical path
//          are ignored, as is everything outside the DAG.
// Cost:    O(computations + options).
#pragma once

#include "base/units.h"
#include "io/report/timeline.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::report {

struct ErrorBars {
  Seconds time_stddev;
  Joules energy_stddev;
};

/// True if some option has a spread.
bool has_spread(const model::ComputationDag& dag);
ErrorBars error_bars_of(const model::ComputationDag& dag, const model::Plan& plan, const Timeline& timeline);

}  // namespace perseus::report
