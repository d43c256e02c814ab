// Maximum flow with lower and upper bounds on every arc, and the minimum cut that proves it maximal.
//
// Problem: given a directed graph with bounds l <= u per arc, a source s and a sink t, find the flow of greatest value
//          with l <= f <= u. By duality (Ford & Fulkerson, chapter 1.9) its value is the least, over all cuts
//          (S, T), of
//              sum of u over arcs S -> T  -  sum of l over arcs T -> S.
// Method:  as published: a dummy source and sink take the excess and deficit that the lower bounds cause, with an arc
//          t -> s, and the flow is feasible iff that network saturates; then the flow is improved from s to t. Two
//          differences, neither of which changes the cut: excess is netted per node where the paper adds both arcs, and
//          blocking flows (Dinic) replace shortest augmenting paths (Edmonds-Karp). New here: set_bounds() keeps the
//          flow, so that solving again after a few changes repairs only what they broke.
// Input:   int64 bounds, 0 <= l <= u; u may be unbounded. Nothing overflows while the sum of all lower bounds and of
//          all finite upper bounds fits int64. No arc enters s or leaves t; parallel arcs and cycles are allowed.
// Output:  `maximum`: the flow, and the cut with the smallest source side (unique for all maximum flows); `unbounded`:
//          there is an s-t path without upper bounds, hence no finite cut; `infeasible`: no flow respects the bounds.
//          After each of them the caller may change bounds and call solve() again.
// Errors:  none.
// Cost:    O(V^2 E) from scratch, O(V + E) when the flow is still maximum.
// Threads: one thread per object.
// Source:  paper appendix "Max Flow Algorithm on the Capacity DAG".
#pragma once

#include <cstdint>
#include <vector>

#include "planning/graph/residual_network.h"

namespace perseus::graph {

enum class FlowOutcome { maximum, unbounded, infeasible };

class BoundedMaxFlow {
 public:
  static constexpr std::int64_t kUnbounded = ResidualNetwork::kUnbounded;

  struct Arc {
    int tail = 0;
    int head = 0;
    std::int64_t lower = 0;
    std::int64_t upper = kUnbounded;
  };

  /// Arcs are numbered as given.
  BoundedMaxFlow(int num_nodes, int source, int sink, std::vector<Arc> arcs);

  void set_bounds(int arc, std::int64_t lower, std::int64_t upper);
  FlowOutcome solve();

  /// Valid after `maximum`.
  [[nodiscard]] std::int64_t flow(int arc) const;
  [[nodiscard]] std::int64_t value() const;
  [[nodiscard]] bool on_source_side(int node) const { return network_.reached(node); }

 private:
  bool restore_feasibility();

  int source_;
  int sink_;
  std::vector<Arc> arcs_;
  ResidualNetwork network_;           // u - f forwards, f - l backwards
  std::vector<std::int64_t> excess_;  // inflow - outflow per node, apart from the flow from s to t
  bool feasible_ = true;              // every excess is 0
};

}  // namespace perseus::graph
