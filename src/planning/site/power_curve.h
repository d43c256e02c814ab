// The rate of a job over its power: its frontier seen by a site.
//
// Problem: mean power at iteration time T is energy over T, and rate is 1/T. Both rise toward faster plans, and rate is
//          a concave function of power where energy is convex in T. Below the slowest plan a job is paced: all ranks
//          wait after each iteration, so that power falls on a straight line to the blocking power at rate 0.
// Input:   a frontier of at least one point, the blocking power of all accelerators of one pipeline, and how many
//          such pipelines the job has.
// Output:  the points in ascending power: paced ones, at rate 0 and from kPaceStep of full speed on in steps of as
//          much, and of 1 % of the rate at most, one at exactly `least_rate`, then the plans. Points that draw no less
//          power than a faster one are left out. paced_rates(): the rates of the paced points, ascending.
// Errors:  none.
// Cost:    O(points).
// Threads: pure function.
#pragma once

#include <vector>

#include "planning/model/frontier.h"
#include "planning/model/site.h"

namespace perseus::site {

inline constexpr double kPaceStep = 0.005;

/// Below that of the slowest plan.
std::vector<double> paced_rates(double slowest_rate, double least_rate);

model::PowerCurve power_curve_of(const model::Frontier& frontier, Watts blocking, double pipelines, double least_rate);

}  // namespace perseus::site
