// How a site's jobs are made to keep its limits: by the allocation, or as sites do without knowing their jobs.
//
// Output:  optimum: every job runs a point of its frontier, or is paced (planning/site/allocate.h).
//          equal-shares: every job gets the same part of its own power at maximum clock, and its best point within it.
//          clock-limit: no computation runs above the same part of its GPU's highest clock.
//          power-limit: no computation draws more than the same mean power of a GPU; those that cannot, run at the
//          lowest clock.
//          The last three use one number for all jobs of a domain: the largest with which they fit, or the least that
//          there is. A job in several limited domains gets the least of their numbers.
// Cost:    an allocation; or 40 evaluations of all jobs for each limited domain.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "planning/model/site_objective.h"
#include "simulation/site_emulator/site_day.h"

namespace perseus::site_emulator {

/// A way per job under a limit per domain.
using ShareMethod = std::function<std::vector<int>(std::span<const Watts> limits)>;

/// optimum first.
std::vector<std::string_view> share_method_names();
/// The day and the kinds must outlive it; empty for an unknown name.
ShareMethod make_share_method(std::string_view name, const SiteDay& day, std::vector<JobKind>& kinds,
                              model::SiteObjective objective);

}  // namespace perseus::site_emulator
