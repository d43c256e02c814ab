// Random sites, and oracles for their allocations: a linear program, and all combinations of points.
//
// Threads: any.
#pragma once

#include <optional>
#include <vector>

#include "oracles/dice.h"
#include "planning/model/site.h"
#include "planning/model/site_objective.h"

namespace perseus::testing {

struct LimitedSite {
  model::Site site;
  std::vector<Watts> limits;
};

/// 1 to `jobs` jobs of up to `points` points in a tree of up to `domains` domains. Powers and rates are on a coarse
/// grid, so that steps tie; limits are often none, sometimes below the floors.
LimitedSite random_site(Dice& dice, int domains, int jobs, int points);

/// The greatest value of the continuous problem (any mix of a job's points at or above its floor), by Clp; nothing
/// where floors exceed a limit. Not for max_min.
std::optional<double> best_mix(const LimitedSite& limited, model::SiteObjective objective);
/// The greatest value of one point each; nothing where floors exceed a limit. For a handful of jobs.
std::optional<double> best_combination(const LimitedSite& limited, model::SiteObjective objective);

}  // namespace perseus::testing
