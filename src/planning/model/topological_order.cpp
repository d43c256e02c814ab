#include "planning/model/topological_order.h"

#include <algorithm>

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
  std::vector<int> first(num_nodes + 1);  // successors of node i: next[first[i] .. first[i + 1])
  std::vector<int> waiting_for(num_nodes);
  for (const auto& [before, after] : edges) {
    ++first[before + 1];
    ++waiting_for[after];
  }
  for (int i = 0; i < num_nodes; ++i) first[i + 1] += first[i];
  std::vector<int> next(edges.size());
  std::vector<int> fill(first.begin(), first.end() - 1);
  for (const auto& [before, after] : edges) next[fill[before]++] = after;

  TopologicalOrder result;
  auto& order = result.order;
  order.reserve(num_nodes);
  for (int i = 0; i < num_nodes; ++i) {
    if (waiting_for[i] == 0) order.push_back(i);
  }
  for (std::size_t head = 0; head < order.size(); ++head) {
    const int node = order[head];
    for (int e = first[node]; e < first[node + 1]; ++e) {
      if (--waiting_for[next[e]] == 0) order.push_back(next[e]);
    }
  }
  if (static_cast<int>(order.size()) < num_nodes) {
    order.clear();
    result.cycle = find_cycle(edges, waiting_for);
  }
  return result;
}

}  // namespace perseus::model
