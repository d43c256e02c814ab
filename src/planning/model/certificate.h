// A dual certificate: a flow through the computation DAG that proves a lower bound on energy for every deadline.
//
// Shape:   one non-negative flow per computation and per dependency, in the order of ComputationDag. Let
//          source_i = x_i - (flow of dependencies into i) and sink_i = x_i - (flow of dependencies out of i); both must
//          be >= 0 and F = sum source_i = sum sink_i. Then for EVERY plan with iteration time <= T
//              effective energy >= sum_i min_option (e + x_i t) + sum_dependencies y * latency - F * T,
//          by weak duality, independent of how the flow was found. planning/checker checks it without the planner.
// Units:   watts (the price of a second).
// Threads: plain value.
// Source:  docs/decisions/0005; Phillips & Dessouky 1977; paper appendix on GetNextSchedule.
#pragma once

#include <vector>

#include "base/units.h"

namespace perseus::model {

struct BoundCertificate {
  Seconds deadline;  ///< at which this flow is optimal; it is valid at every deadline
  std::vector<double> computation_flow_w;
  std::vector<double> dependency_flow_w;
};

}  // namespace perseus::model
