// What falls of a site's limits, known already, will mean to each job: sent to its ranks before, so that they fall
// without the server.
//
// Problem: a limit that falls at noon must hold even if the server dies at eleven. A rise needs no care: without it,
//          jobs are slower than they could be, and no limit is exceeded.
// Input:   the site document, which knows limits over time; the jobs and what they can draw now.
// Output:  falls_ahead(): the times within kHorizon_s from which on a limit is lower than ever before, at most
//          kMostFalls, each with the least limits until the next one, so that there is no time between them. Within a
//          ramp they are seconds apart at first, and then by a part of the time that has passed: of more of them, those
//          become one that are early by the least part.
//          budgets_ahead(): per job its share under the limits then, as the power of a plan, the ceiling within it, and
//          for a share below the slowest plan the period that ranks need who are at that ceiling (jobs/pacing.h); only
//          where the share is less than its grant, and then where the ceiling falls or the period grows.
//          falls_from(): those of a plan that is made now. Within a ramp the last one that has passed comes again,
//          since the limit has not fallen as far yet.
// Errors:  none.
// Cost:    O(steps x domains) for the times; a division (site_shares.h) per time.
// Threads: pure functions.
// Source:  docs/decisions/0054.
#pragma once

#include <vector>

#include "server/jobs/power_budget.h"
#include "server/jobs/site_document.h"
#include "server/power/site_shares.h"

namespace perseus::power {

inline constexpr double kHorizon_s = 3600;
inline constexpr std::size_t kMostFalls = 8;

struct LaterLimits {
  double from_s = 0;
  double until_s = 0;         ///< within this time a limit falls to that, or is that
  std::vector<Watts> limits;  ///< per domain, for accelerators
};

/// Those from `after_s` on; until then the grants of now hold. Per domain: as for limits_between() (powered_jobs.h).
std::vector<LaterLimits> falls_ahead(const jobs::SiteDocument& document, double after_s,
                                     const std::vector<int>& accelerators, const std::vector<double>& meter_factors);

using BudgetsAhead = std::vector<std::vector<jobs::LaterBudget>>;  ///< per job
BudgetsAhead budgets_ahead(const PoweredSite& site, const std::vector<LaterLimits>& falls);

/// The limits fall on from those at `at_s`, within the last fall before.
bool falls_on(const std::vector<LaterLimits>& falls, double at_s, const std::vector<Watts>& limits);
std::vector<jobs::LaterBudget> falls_from(double at_s, bool falls_on, std::vector<jobs::LaterBudget> ahead);

/// True if a job may keep what it was sent: it falls at the same times, nowhere to a higher ceiling, and nowhere
/// needlessly far.
bool still_holds(const std::vector<jobs::LaterBudget>& sent, const std::vector<jobs::LaterBudget>& now);

}  // namespace perseus::power
