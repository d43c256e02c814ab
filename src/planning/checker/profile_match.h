// Checks that the options in a plan file are the measurements of a profile.
//
// Problem: all other checks recompute claims from the options in the plan file itself. This one ties them to the
//          profile: every type of computation has exactly the profile's measurements of its stage and instruction, with
//          their spreads.
// Input:   a valid DAG of a pipeline; the profile that the plan file claims.
// Output:  findings, one sentence each; empty: all options are the profile's. The check derives derived instructions
//          (recompute, pure_backward, input_gradient, weight_gradient) again; it takes the share of a split backward
//          from the first option, and the share must hold for all others.
// Cost:    O(types * options).
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"
#include "planning/model/profile.h"

namespace perseus::checker {

std::vector<std::string> check_against_profile(const model::ComputationDag& dag, const model::Profile& profile,
                                               double tolerance = 1e-9);

/// Checks that the draws of a noisy profile give the claimed lateness and standard deviations. `profile` holds the
/// means, from which the plans were made. Checks maximum clock and at most `most_points` points, evenly spread, each by
/// one simulation per draw. Plans without such claims, as those of the baselines, pass.
std::vector<std::string> check_expected(const model::ComputationDag& dag, const model::Frontier& frontier,
                                        const model::Profile& profile, const std::vector<model::Profile>& draws,
                                        std::size_t most_points, double tolerance = 1e-9);

}  // namespace perseus::checker
