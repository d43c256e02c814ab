// The guards of a site's windows: what the limits of domains whose meters average over a window leave for swings.
//
// Problem: a job that has been sent a new grant follows the old plan or the new one, so that it swings like either.
// Input:   jobs with their swings (job_swing.h), and the grants that a job may follow.
// Output:  swing_under(): what the job adds to the sums of a domain (planning/site/window_guard.h), beyond the greatest
//          of these grants: of a plan that draws less, only what exceeds that grant counts. guards_of(): per domain for
//          grants of all jobs; 0 W without a window. windows_of_limits(): the windows of domains that have a limit;
//          empty: there are none. A job without a frontier counts as at the power that the site's document names for
//          its accelerators, and does not swing.
// Errors:  none.
// Cost:    that of JobSwing per plan; guards_of() O(jobs x levels).
// Threads: pure functions.
// Source:  docs/decisions/0058.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "planning/site/grant_order.h"
#include "server/power/site_shares.h"

namespace perseus::power {

using DomainWindows = std::vector<std::optional<Seconds>>;

site::SwingSum swing_under(const PoweredJob& job, std::span<const Watts> grants, Seconds window);
DomainWindows windows_of_limits(const PoweredSite& site);
std::vector<Watts> guards_of(const PoweredSite& site, const DomainWindows& windows, std::span<const Watts> grants);

/// As site::next_grants() for these jobs, whose guards fit too.
std::vector<Watts> next_grants(const PoweredSite& site, std::span<const site::GrantedPower> powers);

}  // namespace perseus::power
