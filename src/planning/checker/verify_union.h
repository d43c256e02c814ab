// Checks the frontier of several configurations' union: is it theirs, is nothing better left out, does the bound hold?
//
// Input:   the frontiers of the configurations, checked by verify_frontier() each; the pipeline's blocking power; what
// is
//          claimed, slowest point first.
// Output:  findings, one sentence each. Claims are compared one with one, without the planner's or the search's code.
// Errors:  none.
// Cost:    O(claims * points of all configurations).
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "planning/model/frontier.h"

namespace perseus::checker {

struct UnionClaim {
  int configuration = 0;
  int point = 0;  ///< of that configuration's frontier
  Seconds time;
  Joules energy;
  Joules effective_energy;
  Joules bound;  ///< on `energy`, over all plans of all configurations no slower than `time`
};

std::vector<std::string> verify_union(const std::vector<const model::Frontier*>& frontiers, Watts total_blocking_power,
                                      const std::vector<UnionClaim>& claims);

}  // namespace perseus::checker
