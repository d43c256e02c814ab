// How well a plan's time and energy are known, as far as the profile's own spread says.
//
// Problem: measurements have a spread; how much of it reaches an iteration? What was measured once, (type, option),
//          is wrong in the same direction wherever the plan uses it, and different measurements are independent: by
//          first-order propagation, time varies with the computations of the critical path, and eq. (1) with every
//          energy and, by what is waited more or less, with every time.
// Input:   a valid DAG, a plan that fits it and its timeline.
// Output:  one standard deviation of time and energy, 0 where the profile has no spread. A critical path that would
//          change is not followed, nor is anything that the DAG does not know.
// Errors:  none.
// Cost:    O(computations + options).
// Threads: pure functions.
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

/// Does any option have a spread?
bool has_spread(const model::ComputationDag& dag);
ErrorBars error_bars_of(const model::ComputationDag& dag, const model::Plan& plan, const Timeline& timeline);

}  // namespace perseus::report
