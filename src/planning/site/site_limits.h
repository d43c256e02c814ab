// From metered limits to limits of the accelerators, and from sudden steps to ramps.
//
// Problem: a meter counts cooling, losses of the supplies, hosts and switches too. And a domain that may only change
//          slowly must begin to fall before its limit does.
// Input:   valid domains; GPUs of the jobs directly in each domain, in_own_nodes().
// Output:  left_for_accelerators(): (metered / PUE - constants) x supply efficiency; below 0 W: the constants alone
//          exceed the limit. for_accelerators(): that, 0 W at least. as_metered(): the inverse of the first. ramped():
//          the greatest function below the steps that falls and rises no faster than allowed, as steps of at most
//          `step` wherever it changes; within each step the limit is the least of the ramp. ramped_limit(): that
//          function at one time.
// Errors:  none.
// Cost:    O(steps x steps).
// Threads: pure functions.
#pragma once

#include <span>
#include <vector>

#include "planning/model/site_description.h"

namespace perseus::site {

Watts left_for_accelerators(Watts metered, const model::SiteDescription& site, Watts constant);
Watts as_metered(Watts accelerators, const model::SiteDescription& site, Watts constant);
Watts for_accelerators(Watts metered, const model::SiteDescription& site, Watts constant);
/// GPUs of a job with those of its nodes that it leaves idle: jobs of at least a node's GPUs share no nodes, smaller
/// ones do.
int in_own_nodes(int gpus, const model::SiteDescription& site);
/// Per domain: what hosts and other constant loads of it and of the domains inside draw.
std::vector<Watts> constants_of(const model::SiteDescription& site, std::span<const int> gpus);

/// Of steps that begin at 0 s or later; before the first: no limit.
Watts limit_at(const std::vector<model::LimitStep>& steps, Seconds time);
Watts ramped_limit(const std::vector<model::LimitStep>& limits, const model::Ramp& ramp, Seconds time);
std::vector<model::LimitStep> ramped(const std::vector<model::LimitStep>& limits, const model::Ramp& ramp, Seconds end,
                                     Seconds step);

}  // namespace perseus::site
