// Bounds what a profiling window costs: places the chosen clocks where they delay the iteration least, and raises
// some.
//
// Input:   the clocks that the next window wants to sample, per type; an upper estimate of each type's time at each
//          clock; the most that the iteration may be slower than with everything at the highest clock.
// Output:  as many clocks per type, the slowest of them at the computations with the most slack; the expected
//          slowdown, at most the limit. Computations that share a clock keep on sharing it.
// Errors:  none.
// Cost:    O(computations log computations), times a few dozen passes.
// Threads: pure functions.
// Source:  docs/decisions/0028.
#pragma once

#include <vector>

#include "server/profiling/choose_clocks.h"
#include "server/profiling/planning.h"
#include "server/profiling/time_energy_model.h"

namespace perseus::profiling {

/// [type][clock]: seconds; two standard deviations above the mean, and at most the time at the next higher clock that
/// was measured, in proportion to the clocks: a computation never slows down by more than its clock does.
std::vector<std::vector<double>> upper_times(const Layout& layout, const Samples& samples,
                                             const TimeEnergyModel& model);

struct BoundedChoice {
  ClockChoice clocks;
  double slowdown = 0;  ///< expected: 0.1 is 10 % slower than everything at the highest clock
};

BoundedChoice bound_slowdown(const PlanningProblem& problem, const std::vector<std::vector<double>>& times,
                             ClockChoice clocks, double most_slowdown, SharedClock shared);

}  // namespace perseus::profiling
