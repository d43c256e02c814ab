// What the jobs of a site give up: power and rate of their plans against their fastest plans without limits.
//
// Problem: a utility pays for the difference between what a site would have drawn and what it drew, and an operator
//          asks which jobs pay for it.
// Input:   a job, what it can draw, the cost of an iteration under its plan; the jobs of a view.
// Output:  add_speed(): the members of a job below `site_speed.h`. The baseline is the fastest plan that the job's
//          policies and stragglers allow: the planned power, and what the grant takes from that plan. So a job
//          without a grant, or that no grant controls, claims nothing; one without ranks draws 0 W. add_speeds(): those
//          of the domains, from the jobs of the view.
// Errors:  none.
// Cost:    O(log plans) per job; O(jobs x depth of the tree).
// Threads: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "server/power/site_power_view.h"
#include "server/savings/job_savings.h"

namespace perseus::power {

void add_speed(const jobs::Job& job, const PoweredJob& powered, const std::optional<jobs::JobView::PerIteration>& cost,
               SiteJobView& shown);
/// `accelerators`: per domain, of the jobs directly in it.
void add_speeds(const jobs::SiteDocument& document, const std::vector<int>& accelerators, SitePowerView& view);
/// Adds a job to the tier of its least rate.
void add_to_tier(std::vector<TierLoss>& tiers, double least_rate, int accelerators, double rate_lost);

/// Mean over the accelerators of all tiers.
double rate_lost_of(const std::vector<TierLoss>& tiers);

}  // namespace perseus::power
