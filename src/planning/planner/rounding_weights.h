// The weights with which the planner rounds the relaxed optimum of a deadline.
//
// Problem: no weights are best at every deadline. Two fixed ones are the best alone and enough for a curve of a
//          thousand deadlines; for the few deadlines that jobs run at, a sequence of different ones finds better plans.
// Output:  see the declarations. A longer beginning of the sequence contains every shorter one, so more of it is never
//          worse.
// Errors:  none.
// Threads: pure functions.
// Source:  docs/decisions/0006-prices-guide-the-rounding.md ("Wanted deadlines").
#pragma once

#include <array>
#include <cstddef>

#include "planning/planner/rounding.h"

namespace perseus::planner {

/// Chosen by bench/planner_report: each wins at some deadlines. The first two are the best alone.
inline constexpr std::array<RoundingWeights, 4> kWeights{
    {{0.5, 0.15, 0.7}, {0.5, 0.3, 0.7}, {0.15, 0.2, 0.7}, {1.2, 0.05, 0.7}}};
inline constexpr int kWeightsInTurn = 2;

/// The k-th of a sequence of different weights, k from 0. Every other one is punctual.
RoundingWeights varied_weights(int k);

/// Length of that sequence at a deadline that jobs run at: 16 to 96, fewer for larger DAGs, whose roundings take
/// longer.
int weights_at_wanted(std::size_t computations);

}  // namespace perseus::planner
