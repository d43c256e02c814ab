// The neighbors of each computation of a DAG, and longest paths along them.
//
// Problem: the earliest start of a computation is the latest arrival over its dependencies; its latest end is the
//          earliest departure that the computations after it need. Planners compute both for many durations.
// Input:   a valid DAG, whose computations are in topological order; latencies in the caller's unit of time (Seconds,
//          double, or integer ticks).
// Output:  per computation, its dependencies in the DAG's order.
// Errors:  none.
// Cost:    O(computations + dependencies) to construct and per longest path; no allocation after construction.
// Threads: plain value.
// Source:  paper section 4.1. planning/checker/plan_run.h finds the same makespans without this code, on purpose.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "base/adjacency_lists.h"
#include "planning/model/computation_dag.h"

namespace perseus::model {

/// A dependency, seen from the computation at one of its ends.
template <class Time>
struct Neighbor {
  int computation;  ///< at the other end
  int dependency;   ///< index into ComputationDag::dependencies
  Time latency;     ///< or what determines it, see longest_path()
};

template <class Time>
using Neighbors = AdjacencyLists<Neighbor<Time>>;

/// The computations before each computation. `latency_of(Dependency)` is the latency in the caller's unit.
template <class Time, class LatencyOf>
Neighbors<Time> neighbors_before(const ComputationDag& dag, LatencyOf latency_of) {
  const std::vector<Dependency>& all = dag.dependencies;
  return {static_cast<int>(dag.computations.size()), static_cast<int>(all.size()), [&](int d) { return all[d].after; },
          [&](int d) {
            return Neighbor<Time>{all[d].before, d, std::invoke(latency_of, all[d])};
          }};
}

/// The computations after each computation.
template <class Time, class LatencyOf>
Neighbors<Time> neighbors_after(const ComputationDag& dag, LatencyOf latency_of) {
  const std::vector<Dependency>& all = dag.dependencies;
  return {static_cast<int>(dag.computations.size()), static_cast<int>(all.size()), [&](int d) { return all[d].before; },
          [&](int d) {
            return Neighbor<Time>{all[d].after, d, std::invoke(latency_of, all[d])};
          }};
}

inline Neighbors<double> neighbors_before_s(const ComputationDag& dag) {
  return neighbors_before<double>(dag, [](const Dependency& d) { return d.latency.value(); });
}
inline Neighbors<double> neighbors_after_s(const ComputationDag& dag) {
  return neighbors_after<double>(dag, [](const Dependency& d) { return d.latency.value(); });
}

/// Earliest start of a computation; `end` holds the ends of the computations before it. `latency_of(Neighbor)`: Time.
template <class Time, class Latency, class LatencyOf>
Time earliest_start(const Neighbors<Latency>& before, int computation, const std::vector<Time>& end,
                    LatencyOf latency_of) {
  Time start{};
  for (const Neighbor<Latency>& b : before.of(computation)) {
    start = std::max(start, end[b.computation] + std::invoke(latency_of, b));
  }
  return start;
}
template <class Time>
Time earliest_start(const Neighbors<Time>& before, int computation, const std::vector<Time>& end) {
  return earliest_start(before, computation, end, &Neighbor<Time>::latency);
}

/// Latest end of a computation in an iteration that ends at `deadline`; `latest_start` holds the latest starts of the
/// computations after it.
template <class Time>
Time latest_end(const Neighbors<Time>& after, int computation, const std::vector<Time>& latest_start, Time deadline) {
  Time end = deadline;
  for (const Neighbor<Time>& a : after.of(computation)) end = std::min(end, latest_start[a.computation] - a.latency);
  return end;
}

/// Sets `end` to the earliest end of each computation and returns the makespan. `duration_of(computation)` and
/// `latency_of(Neighbor)`: Time.
template <class Time, class Latency, class DurationOf, class LatencyOf>
Time longest_path(const Neighbors<Latency>& before, DurationOf duration_of, LatencyOf latency_of,
                  std::vector<Time>& end) {
  end.resize(before.num_nodes());
  Time makespan{};
  for (int i = 0; i < before.num_nodes(); ++i) {
    end[i] = earliest_start(before, i, end, latency_of) + duration_of(i);
    makespan = std::max(makespan, end[i]);
  }
  return makespan;
}
template <class Time, class DurationOf>
Time longest_path(const Neighbors<Time>& before, DurationOf duration_of, std::vector<Time>& end) {
  return longest_path(before, duration_of, &Neighbor<Time>::latency, end);
}

/// Sets `latest_start` to the latest start of each computation with which the iteration ends by `deadline`.
template <class Time, class DurationOf>
void latest_starts(const Neighbors<Time>& after, DurationOf duration_of, Time deadline,
                   std::vector<Time>& latest_start) {
  latest_start.resize(after.num_nodes());
  for (int i = after.num_nodes() - 1; i >= 0; --i) {
    latest_start[i] = latest_end(after, i, latest_start, deadline) - duration_of(i);
  }
}

}  // namespace perseus::model
