// Edges of a graph, grouped by a node: one array for all lists, in compressed rows.
//
// Input:   nodes 0..num_nodes-1; the edges 0..num_edges-1 as two functions: the node of an edge, and what its node's
//          list holds for it.
// Output:  per node, its edges in the order of their numbers.
// Errors:  none; a node out of range is a programming error.
// Cost:    O(nodes + edges), two allocations that stay.
// Threads: plain value.
#pragma once

#include <span>
#include <vector>

namespace perseus {

template <class Edge>
class AdjacencyLists {
 public:
  AdjacencyLists() = default;

  template <class NodeOf, class MakeEdge>
  AdjacencyLists(int num_nodes, int num_edges, NodeOf node_of, MakeEdge make_edge)
      : first_(num_nodes + 1, 0), edges_(num_edges) {
    for (int e = 0; e < num_edges; ++e) ++first_[node_of(e) + 1];
    for (int v = 0; v < num_nodes; ++v) first_[v + 1] += first_[v];
    std::vector<int> next(first_.begin(), first_.end() - 1);
    for (int e = 0; e < num_edges; ++e) edges_[next[node_of(e)]++] = make_edge(e);
  }

  [[nodiscard]] int num_nodes() const { return static_cast<int>(first_.size()) - 1; }
  [[nodiscard]] std::span<const Edge> of(int node) const {
    return {edges_.data() + first_[node], edges_.data() + first_[node + 1]};
  }
  [[nodiscard]] std::span<Edge> of(int node) {
    return {edges_.data() + first_[node], edges_.data() + first_[node + 1]};
  }

 private:
  std::vector<int> first_{0};  // edges of node v: edges_[first_[v]] .. edges_[first_[v + 1]]
  std::vector<Edge> edges_;
};

}  // namespace perseus
