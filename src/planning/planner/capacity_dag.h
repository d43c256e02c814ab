// The edge-centric, critical, capacitated DAG of the published method, and the minimum cut that gives the next change.
//
// Problem: given integer durations of all computations, which of them must become one unit shorter, and which may
//          become one unit longer, so that every critical path gets one unit shorter at least cost? It is the minimum
//          cut between start and end of the DAG in which each computation is an arc with capacities
//            (0, faster)  at its slowest,   (slower, unbounded)  at its fastest,   (slower, faster)  otherwise,
//          the costs of one unit less and savings of one unit more. Computation i is the arc 2i -> 2i + 1; dependencies
//          are arcs without an upper bound; arcs that are not critical have capacity 0, which equals removing them.
// Input:   the DAG; durations in topological order of computations.
// Output:  see the functions.
// Errors:  none.
// Cost:    O(V + E) per call when few capacities have changed.
// Threads: one thread per object.
// Source:  paper section 4.3 and appendix "Full Details of GetNextSchedule"; Phillips & Dessouky 1977.
#pragma once

#include <cstdint>
#include <vector>

#include "planning/graph/bounded_max_flow.h"
#include "planning/model/computation_dag.h"
#include "planning/model/neighbors.h"
#include "planning/planner/cost_curve.h"

namespace perseus::planner {

class CapacityDag {
 public:
  /// Keeps a reference to curves.
  CapacityDag(const model::ComputationDag& dag, const CostCurves& curves, Seconds unit);

  /// Longest path, in units. Does not change capacities.
  std::int64_t iteration_time(const std::vector<std::int64_t>& durations);
  /// Finds the critical arcs and sets their capacities. Returns the iteration time.
  std::int64_t annotate(const std::vector<std::int64_t>& durations);

  struct Changes {
    std::vector<int> speed_up;
    std::vector<int> slow_down;
  };
  /// The minimum cut for the durations of the last annotate(); false if no cut is finite: the time is minimal.
  bool find_cut(Changes& changes);

 private:
  struct Capacity {
    std::int64_t lower = 0;
    std::int64_t upper = 0;
    bool operator==(const Capacity&) const = default;
  };
  [[nodiscard]] Capacity capacity(int computation, std::int64_t duration) const;
  void set_capacity(int arc, Capacity capacity);

  const CostCurves& curves_;
  int num_computations_;
  model::Neighbors<std::int64_t> before_, after_;
  std::vector<std::int64_t> earliest_end_;
  std::vector<std::int64_t> latest_start_;
  std::vector<Capacity> capacity_;  // per arc: computations, dependencies by `before`, from the source, to the sink
  graph::BoundedMaxFlow flow_;
};

}  // namespace perseus::planner
