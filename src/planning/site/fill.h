// Gives the watts that an allocation leaves to the jobs that gain most per watt.
//
// Problem: jobs run whole points, so that rounding down leaves some watts in every domain. Points beside the concave
//          hull count here too.
// Input:   a valid site, a limit per domain, and a point per job within all limits.
// Output:  points of no less value, within all limits.
// Errors:  none.
// Cost:    O(jobs x (levels + log points)) and as much per raised job.
// Threads: pure function.
#pragma once

#include <span>
#include <vector>

#include "planning/model/site.h"
#include "planning/model/site_objective.h"

namespace perseus::site {

/// Sums of the same watts in another order differ in their last digits: a limit allows this factor more.
inline constexpr double kRoundingError = 1 + 1e-12;

void fill(const model::Site& site, model::SiteObjective objective, std::span<const Watts> limits,
          std::vector<int>& chosen);

}  // namespace perseus::site
