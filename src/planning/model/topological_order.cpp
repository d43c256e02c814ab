#include "planning/model/topological_order.h"

#include <algorithm>

#include "base/adjacency_lists.h"

namespace perseus::model {
namespace {

/// Every remaining node waits for another remaining node: following predecessors must reach a node twice.
std::vector<int> find_cycle(const std::vector<std::pair<int, int>>& edges, const std::vector<int>& waiting_for) {
  std::vector<int> predecessor(waiting_for.size(), -1);
  for (const auto& [before, after] : edges) {
    if (waiting_for[before] > 0 && waiting_for[after] > 0) predecessor[after] = before;
  }
  int node = 0;
  while (waiting_for[node] == 0) ++node;
  std::vector<char> visited(waiting_for.size());
  for (; visited[node] == 0; node = predecessor[node]) visited[node] = 1;
  std::vector<int> cycle;
  const int start = node;
  do {
    cycle.push_back(node);
    node = predecessor[node];
  } while (node != start);
  std::ranges::reverse(cycle);
  std::rotate(cycle.begin(), std::ranges::min_element(cycle), cycle.end());
  return cycle;
}

}  // namespace

TopologicalOrder topological_order(int num_nodes, const std::vector<std::pair<int, int>>& edges) {
  const AdjacencyLists<int> successors(
      num_nodes, static_cast<int>(edges.size()), [&](int e) { return edges[e].first; },
      [&](int e) { return edges[e].second; });
  std::vector<int> waiting_for(num_nodes);
  for (const auto& [before, after] : edges) ++waiting_for[after];

  TopologicalOrder result;
  auto& order = result.order;
  order.reserve(num_nodes);
  for (int i = 0; i < num_nodes; ++i) {
    if (waiting_for[i] == 0) order.push_back(i);
  }
  for (std::size_t head = 0; head < order.size(); ++head) {
    for (const int next : successors.of(order[head])) {
      if (--waiting_for[next] == 0) order.push_back(next);
    }
  }
  if (static_cast<int>(order.size()) < num_nodes) {
    order.clear();
    result.cycle = find_cycle(edges, waiting_for);
  }
  return result;
}

}  // namespace perseus::model
