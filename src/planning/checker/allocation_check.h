// Checks an allocation of a site's power with code that shares nothing with the allocator.
//
// Input:   a valid site, a limit per domain, the objective, and the allocation.
// Output:  nothing, or the first thing that is wrong: a point outside a curve, a limit exceeded although floors fit, a
//          floor missed, a negative price, a value or a bound other than the ones recomputed. The bound follows from
//          the prices alone: whatever they are, no allocation has a greater value.
// Cost:    O(points + jobs x levels).
// Threads: pure function.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "planning/model/site.h"
#include "planning/model/site_objective.h"

namespace perseus::checker {

std::optional<std::string> wrong_in_allocation(const model::Site& site, std::span<const Watts> limits,
                                               model::SiteObjective objective, const model::Allocation& allocation);

}  // namespace perseus::checker
