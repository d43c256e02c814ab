// A frontier whose times and energies are those to expect from a noisy profile.
//
// Problem: an iteration takes as long as its longest path. Of many paths with uncertain times the longest is expected
//          later than the longest by the means, and more so for a plan that makes all paths equally long than for
//          maximum clock. A deadline that is kept by the means is missed on average.
// Input:   the DAG that was planned with (the means), its types as each draw of the profile has them
//          (server/profiling/pooled_profile.h), the frontier. No draws: the frontier comes back as it is.
// Output:  the same plans, less those that are now worse in time and energy than others; times are means over the
//          draws, energies those of the means with the waiting that this takes, bounds those of the later times; one
//          standard deviation over the draws of each. A bound holds for expected values too: effective energy is
//          linear in the measurements, and no expected time is less than that of the means. The lateness is that of
//          clocks that change at once, also where a plan has a switch latency.
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

/// Of draws of the profile that a DAG was built from in the same way. Errors: those of build_dag() too.
Result<DrawnTypes> drawn_types(const std::vector<model::Profile>& draws, std::optional<double> split_backward,
                               const model::Schedule& schedule, const model::PipelineCosts& costs, StopCheck& check);

Result<model::Frontier> expected_frontier(const model::ComputationDag& dag, const DrawnTypes& draws,
                                          model::Frontier frontier, StopCheck& check);

}  // namespace perseus::profiling
