// A topological order of a directed graph, or the cycle that prevents it.
//
// Input:   nodes 0..num_nodes-1, edges as (before, after) pairs in any order; self-loops and repeats are allowed.
// Output:  all nodes, breadth-first from those without predecessors (ties by number, so the result is unique); if there
//          is no such order, one cycle, each node before the next and the last before the first, starting at its
//          lowest number.
// Cost:    O(nodes + edges).
// Threads: pure function.
#pragma once

#include <utility>
#include <vector>

namespace perseus::model {

struct TopologicalOrder {
  std::vector<int> order;  ///< empty if there is a cycle (or no nodes)
  std::vector<int> cycle;  ///< empty if there is an order
};

TopologicalOrder topological_order(int num_nodes, const std::vector<std::pair<int, int>>& edges);

}  // namespace perseus::model
