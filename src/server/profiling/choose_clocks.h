// Chooses the clocks to run next: those that may turn out to be the plan's.
//
// Problem: an iteration of M microbatches samples M clocks of each type. first_clocks(): nothing is known yet: the
//          choice is spread over the upper part of the range, each clock twice where there are enough occurrences,
//          with an offset per stage. clocks_of_plans(): samples are spent on what decides between plans: each
//          computation runs at the clock that the best plan of a profile still possible gives it, a profile drawn for
//          each; one in four at the clock near it that all stages measured least. Clocks that no plan would use, as
//          those below the least energy, are not tried again once that is known.
// Output:  per type a clock index per occurrence.
// Errors:  none.
// Cost:    linear in computations.
// Threads: pure.
// Source:  beyond the paper; Thompson sampling.
#pragma once

#include <random>
#include <vector>

#include "planning/model/frontier.h"
#include "server/profiling/layout.h"
#include "server/profiling/planning.h"

namespace perseus::profiling {

using ClockChoice = std::vector<std::vector<int>>;  ///< [type][occurrence]: index into its clocks

/// The scope of one clock in a window: a computation; a type (only iterations' energies are known, and a mix would
/// blur the sum); a rank (clocks take too long to arrive to change between computations).
enum class SharedClock { computation, type, rank };

ClockChoice first_clocks(const Layout& layout, double lowest_clock_share, std::mt19937_64& engine);

/// `plans`: at least one, by option of `problem.reaching()`.
ClockChoice clocks_of_plans(const Layout& layout, const Samples& samples, const PlanningProblem& problem,
                            const std::vector<model::Plan>& plans, std::mt19937_64& engine);

/// One of the chosen clocks of each type or rank, drawn at random, for all computations that share a clock.
ClockChoice share_clocks(const Layout& layout, ClockChoice choice, SharedClock shared, std::mt19937_64& engine);

}  // namespace perseus::profiling
