// The plan for a straggler: what a pipeline should run when another one sets the pace.
//
// Problem: all pipelines wait for the slowest, T' seconds; until then waiting burns blocking power. The least energy is
// the slowest realised point with T <= T' (waiting is already in effective energy), and past the frontier's end, its
// end: T_opt = min(T*, T').
// Input: a frontier of at least one point and T'. Output: that point; if even the fastest point is slower than T',
// the fastest. Cost: O(log points), no allocation. Errors: none. Threads: pure.
// Source: paper section 3.1, with T* of *effective* energy.
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
