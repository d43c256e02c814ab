// The transfers of an iteration that take much longer than its other transfers: a timeline marks them.
//
// Input:   a valid ComputationDag.
// Output:  the dependencies between two ranks whose latency is above three times the median of all such dependencies,
//          grouped by sending and receiving rank; empty if all links are alike. The pages mark the same ones
//          (web/src/iteration.js).
// Cost:    O(dependencies).
#pragma once

#include <vector>

#include "planning/model/computation_dag.h"

namespace perseus::report {

struct SlowLink {
  int from = 0;  ///< rank
  int to = 0;
  Seconds latency;                                ///< the longest of its transfers
  std::vector<model::Dependency> transfers = {};  ///< in the DAG's order
};

std::vector<SlowLink> slow_links(const model::ComputationDag& dag);

}  // namespace perseus::report
