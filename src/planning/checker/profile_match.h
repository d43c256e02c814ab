// Are the options that a plan file plans with the measurements of a profile?
//
// Problem: all other checks recompute claims from the options in the plan file itself. This one ties them to the
// profile: every type of computation has exactly the profile's measurements of its stage and instruction.
// Input:   a valid DAG of a pipeline; the profile that it is said to be made from.
// Output:  findings, one sentence each; empty: all options are the profile's. Derived instructions (recompute,
//          pure_backward, input_gradient, weight_gradient) are derived again; the share of a split backward is read off
//          the first option and must hold for all others.
// Cost:    O(types * options).
// Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/profile.h"

namespace perseus::checker {

std::vector<std::string> check_against_profile(const model::ComputationDag& dag, const model::Profile& profile,
                                               double tolerance = 1e-9);

/// Do the draws of a noisy profile give the claimed lateness and standard deviations? `profile` is what the plans were
/// made from (the means). Checks maximum clock and at most that many points, evenly spread, each by a simulation per
/// draw. Plans that claim none, as those of the baselines, pass.
std::vector<std::string> check_expected(const model::ComputationDag& dag, const model::Frontier& frontier,
                                        const model::Profile& profile, const std::vector<model::Profile>& draws,
                                        std::size_t most_points, double tolerance = 1e-9);

}  // namespace perseus::checker
