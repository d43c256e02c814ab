// Looks up the plan for a pipeline while a straggler sets the iteration time.
//
// Problem: all pipelines wait for the slowest, T' seconds; until then waiting takes blocking power. The slowest
//          realized point with T <= T' needs the least energy (effective energy includes waiting); beyond the end of
//          the frontier it is that end: T_opt = min(T*, T').
// Input:   a frontier of at least one point and T'.
// Output:  that point; the fastest point if all points are slower than T'.
// Errors:  none.
// Cost:    O(log points), no allocation.
// Threads: pure functions.
// Source:  paper section 3.1, with T* of *effective* energy.
#pragma once

#include "base/units.h"
#include "planning/model/frontier.h"

namespace perseus::planner {

/// Index into frontier.points.
std::size_t look_up_index(const model::Frontier& frontier, Seconds straggler_time);

inline const model::FrontierPoint& look_up(const model::Frontier& frontier, Seconds straggler_time) {
  return frontier.points[look_up_index(frontier, straggler_time)];
}

}  // namespace perseus::planner
