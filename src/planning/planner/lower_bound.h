// The lower bound of effective energy over all plans, as a curve in iteration time, with dual certificates.
//
// Problem: no plan of the discrete clocks can need less effective energy than the linear relaxation.
// Input:   a valid DAG; deadlines to certify.
// Output:  the exact piecewise linear curve, of a large DAG a little less (planning/planner/relaxation.h); one
//          certificate per deadline.
// Errors:  none.
// Cost:    one parametric flow, see bench/.
// Threads: pure function.
// Source:  docs/decisions/0005 and 0006.
#pragma once

#include <functional>
#include <vector>

#include "base/units.h"
#include "planning/model/certificate.h"
#include "planning/model/computation_dag.h"
#include "planning/model/frontier.h"

namespace perseus::planner {

/// The lower-bound curve alone; with deadlines given (any order), also one dual certificate for each, in that order.
struct LowerBoundResult {
  model::LowerBound bound;
  std::vector<model::BoundCertificate> certificates;
  long pivots = 0;   ///< operation count of the parametric flow, for the benchmarks
  Watts price_step;  ///< 0: the curve is exact
};
/// Calls `progress` with 0..1, one call per certificate. `exact`: without a step of prices, however large the DAG.
LowerBoundResult compute_lower_bound(const model::ComputationDag& dag, const std::vector<Seconds>& certify_at = {},
                                     const std::function<void(double done)>& progress = {}, bool exact = false);

}  // namespace perseus::planner
