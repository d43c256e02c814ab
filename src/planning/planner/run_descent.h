// Slows down the runs of a plan whose clocks must stay for a while or arrive late, as far as its slack allows.
//
// Problem: with such limits a plan found by prices leaves slack that no single computation may use; a run as a whole,
//          or a part of it next to a slower run, often may.
// Method:  first-improvement descent. Moves: a run takes a lower clock; a run of lower clock takes over some
//          computations at the edge of its neighbor; half a run takes a lower clock. It realizes the plan of each move.
// Input:   a plan with its realized outcome.
// Output:  a plan of less effective energy, no slower than `deadline`, that dwells at least `min_dwell` on every rank;
//          the given one if none of the moves helps.
// Errors:  none.
// Cost:    one realization per move; at most `budget` realizations, which it counts down.
// Threads: single-threaded.
// Source:  beyond the paper, see planning/planner/clock_runs.h.
#pragma once

#include "base/stop_check.h"
#include "planning/planner/clock_runs.h"
#include "planning/planner/late_clocks.h"

namespace perseus::planner {

/// If `check` stops the descent, the plan found so far stays.
Realizer::Outcome slow_down_runs(const model::ComputationDag& dag, const ClockRuns& runs, LateClocks& late,
                                 Seconds deadline, Seconds min_dwell, model::Plan& plan, long& budget,
                                 StopCheck& check);

}  // namespace perseus::planner
