// Chooses the clocks to run next: those whose measurement informs the plan most.
//
// Problem: an iteration of M microbatches samples M clocks of each type. first_clocks(): nothing is known yet: the
//          choice is spread over the upper part of the range, each clock twice where there are enough occurrences,
//          with an offset per stage. next_clocks(): a clock's weight is how often plans between T_min and the slowest
//          deadline run at it, over the profiles that the samples leave possible (the clock that is best at the price
//          of time that the relaxation puts on each computation). Clocks are then chosen one by one, each where a
//          sample removes most of the weighted variance of energy and of time at its price; pending measurements of
//          ranks chosen before count as known. So clocks that no plan would use, such as those below the least
//          energy, are not tried again once that is known. If only energies of iterations are measured, a single
//          clock per type and iteration is chosen, as a mix would blur the sum.
// Output:  per type a clock index per occurrence, shuffled.
// Errors:  none.
// Cost:    one relaxation, and per sample O(clocks^2).
// Threads: pure.
// Source:  beyond the paper; Thompson sampling for the weights, A-optimal design for the rest.
#pragma once

#include <random>
#include <vector>

#include "base/stop_check.h"
#include "server/profiling/planning.h"
#include "server/profiling/time_energy_model.h"

namespace perseus::profiling {

using ClockChoice = std::vector<std::vector<int>>;  ///< [type][occurrence]: index into its clocks

/// The scope of one clock in a window: a computation; a type (only iterations' energies are known, and a mix would
/// blur the sum); a rank (clocks take too long to arrive to change between computations).
enum class SharedClock { computation, type, rank };

ClockChoice first_clocks(const Layout& layout, double lowest_clock_share, std::mt19937_64& engine);

/// One of each rank's chosen clocks, drawn at random, for all its computations.
ClockChoice one_clock_per_rank(const Layout& layout, ClockChoice choice, std::mt19937_64& engine);

/// Incomplete if `check` stops it.
ClockChoice next_clocks(const Layout& layout, const PlanningProblem& problem, TimeEnergyModel model,
                        double slowest_deadline, std::mt19937_64& engine, StopCheck& check);

}  // namespace perseus::profiling
