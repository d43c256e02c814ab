// A frontier whose plans keep their times with other latencies of the links too.
//
// Problem: measured runs often allow several sets of latencies (docs/decisions/0064). A plan that fits one set slows
//          computations that another set makes critical, and is late if that other set is the true one.
// Method:  a plan may exceed maximum clock's time, with every set, by no more than it does with the latencies of the
//          DAG, plus kLinkTolerance. Plans that do are left out, but for some that are repaired: repeatedly, on the
//          critical path of the set that is most late, the steps to shorter times that cost least until the path fits;
//          then slower options wherever they fit all sets.
// Input:   a valid DAG, sets of latencies, a frontier of it without switch latency and dwell.
// Output:  a frontier; maximum clock if no other plan is as fast.
// Errors:  none.
// Cost:    O((sets * points + late sets * 60 repairs * rounds) * (computations + dependencies)), with some 20 rounds a
//          repair.
// Threads: pure functions.
// Source:  beyond the paper; docs/decisions/0064.
#pragma once

#include <span>
#include <vector>

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::planner {

/// [set][dependency]
using LatencySets = std::vector<std::vector<Seconds>>;

constexpr double kLinkTolerance = 5e-4;  ///< of maximum clock's time; predictions of iteration times are no better

/// By how much a plan is later than the DAG's own latencies say, with the set where it is latest; both times against
/// maximum clock's, the result relative to it. >= 0.
double lateness_with(const model::ComputationDag& dag, const LatencySets& sets, const model::Plan& plan);

/// `slowdowns`: relative to maximum clock's time, of plans to repair in any case; 0 is always among them.
model::Frontier robust_frontier(const model::ComputationDag& dag, const LatencySets& sets, model::Frontier frontier,
                                std::span<const double> slowdowns);

}  // namespace perseus::planner
