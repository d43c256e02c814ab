// Searches the plans of one deadline whose clocks must stay for a while or arrive late, beyond what a descent reaches.
//
// Problem: where a clock takes a good part of a computation to arrive, most single moves make a plan late or dearer;
//          several together would pay: one run gets faster so that its neighbors may share a lower clock.
// Method:  simulated annealing. A move gives a stretch of a rank's computations one clock: that of a neighbor, one
//          nearby, or any. Plans may be late on the way, at a price; the temperature falls from an eighth of a mean
//          computation's energy to a two-thousandth. The random numbers are the same in each call.
// Input:   a plan that ends by `deadline`.
// Output:  the plan of least effective energy met that ends by `deadline` and dwells at least `min_dwell` on every
//          rank, with its outcome; the given one if none is better.
// Errors:  none.
// Cost:    one realization a move.
// Source:  Kirkpatrick, Gelatt, Vecchi: Optimization by Simulated Annealing, Science 220 (1983).
#pragma once

#include "base/stop_check.h"
#include "planning/planner/clock_runs.h"
#include "planning/planner/late_clocks.h"

namespace perseus::planner {

/// If `check` stops the search, the best plan so far stays.
Realizer::Outcome anneal_runs(const model::ComputationDag& dag, const ClockRuns& runs, LateClocks& late,
                              Seconds deadline, Seconds min_dwell, model::Plan& plan, long moves, StopCheck& check);

}  // namespace perseus::planner
