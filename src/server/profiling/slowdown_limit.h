// Bounds the cost of a profiling window: places the chosen clocks where they delay the iteration least, and raises
// some.
//
// Input:   the clocks that the next window should sample, per type; an upper estimate of each type's time at each
//          clock; the largest allowed slowdown of the iteration against everything at the highest clock.
// Output:  as many clocks per type, the slowest of them at the computations with the most slack; the expected
//          slowdown, at most the limit. Computations that share a clock continue to share it.
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

/// [type][clock]: seconds; two standard deviations above the mean, and at most the time at the next higher measured
/// clock, scaled by the ratio of the clocks: a computation never slows down by more than its clock does.
std::vector<std::vector<double>> upper_times(const Layout& layout, const Samples& samples,
                                             const TimeEnergyModel& model);

struct BoundedChoice {
  ClockChoice clocks;
  double slowdown = 0;  ///< expected: 0.1 is 10 % slower than everything at the highest clock
};

BoundedChoice bound_slowdown(const PlanningProblem& problem, const std::vector<std::vector<double>>& times,
                             ClockChoice clocks, double most_slowdown, SharedClock shared);

}  // namespace perseus::profiling
