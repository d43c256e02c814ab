// Checks the frontier of the union of several configurations: its points exist, none better is missing, the bound
// holds.
//
// Input:   the frontiers of the configurations, each checked by verify_frontier(); the pipeline's blocking power; the
//          claims, slowest point first.
// Output:  findings, one sentence each. It compares claims one by one, without the planner's or the search's code.
// Errors:  none.
// Cost:    O(claims * points of all configurations).
// Threads: pure function.
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
