// Replaces a frontier's times and energies by their expected values under a noisy profile.
//
// Problem: an iteration takes as long as its longest path. The expected length of the longest of many uncertain paths
//          exceeds the longest by the means, and more so for a plan that makes all paths equally long than for
//          maximum clock. A plan that meets a deadline by the means misses it on average.
// Input:   the DAG used for planning (the means), its types in each draw of the profile
//          (server/profiling/pooled_profile.h), the frontier. Without draws the frontier is returned unchanged.
// Output:  the same plans, except those that are now worse than others in time and energy; where none is expected to be
//          as fast as maximum clock, also maximum clock and plans between it and the fastest: clocks that make a draw
//          late are raised until none is, then lowered where that saves most, while the mean time allows it. Times are
//          means over the draws, energies those of the means with the resulting waiting, bounds those of the later
//          times; one standard deviation over the draws of each. A bound holds for expected values too: effective
//          energy is linear in the measurements, and no expected time is less than that of the means. The lateness
//          assumes clocks that change at once, also for a plan with a switch latency.
// Errors:  unavailable, if `check` stops it.
// Cost:    O(points * draws * (computations + dependencies)).
// Threads: pure.
// Source:  beyond the paper; docs/decisions/0043.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "base/stop_check.h"
#include "planning/model/build_dag.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::profiling {

/// [draw][type]: as in ComputationDag::types.
using DrawnTypes = std::vector<std::vector<model::ComputationType>>;

/// Types of draws of the profile that a DAG was built from, in the same way. Errors: those of build_dag() too.
Result<DrawnTypes> drawn_types(const std::vector<model::Profile>& draws, std::optional<double> split_backward,
                               const model::Schedule& schedule, const model::PipelineCosts& costs, StopCheck& check);

Result<model::Frontier> expected_frontier(const model::ComputationDag& dag, const DrawnTypes& draws,
                                          model::Frontier frontier, StopCheck& check);

/// One standard deviation of the share of energy that the plan saves against everything at maximum clock: the spread
/// over the draws, each of which gives both energies. Iterations end at their own times, or wait for `deadline`.
/// Requires draws.
double saving_stddev(const model::ComputationDag& dag, const DrawnTypes& draws, const model::Plan& plan,
                     std::optional<Seconds> deadline = std::nullopt);

}  // namespace perseus::profiling
