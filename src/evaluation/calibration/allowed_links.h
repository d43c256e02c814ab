// Links that the runs allow: other latencies that explain the measured iterations about as well as the chosen ones.
//
// Problem: a link that no run waits for may be slow; so may one whose latency other links or a tail explain as well.
//          A plan that slows the stages beside it would be late.
// Method:  the candidates of choose_timing() that are nearly as likely; and of each likely one with a latency per
//          boundary, the largest latency of each boundary with which the runs remain about as likely, where all other
//          unknowns may follow; from there also the other boundaries, as far as they go.
// Input:   the problem and the candidates of choose_timing().
// Output:  without the chosen links, and with no two that differ by less than kSameLinks_s. Empty where transfers
//          queue: the DAG then has other dependencies.
// Source:  docs/decisions/0064-plans-for-every-link-that-runs-allow.md.
#pragma once

#include <vector>

#include "evaluation/calibration/choose_timing.h"
#include "planning/model/build_dag.h"

namespace perseus::calibration {

constexpr double kSlowestLink_s = 0.1;  ///< of a link whose latency no run bounds
constexpr double kSameLinks_s = 5e-4;

std::vector<model::OtherLinks> allowed_links(const TimedProblem& problem, const TimingChoice& choice);

}  // namespace perseus::calibration
