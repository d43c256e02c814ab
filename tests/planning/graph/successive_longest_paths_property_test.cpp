// Successive longest paths on random networks: the curve of the parametric simplex, and optimal flows and times.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "planning/graph/successive_longest_paths.h"

namespace perseus::graph {
namespace {

/// Nodes in topological order: the source first, the sink last. Few different lengths and thresholds, so many ties.
ParametricNetwork random_network() {
  ParametricNetwork network;
  network.num_nodes = *rc::gen::inRange(2, 9);
  network.sink = network.num_nodes - 1;
  const auto add = [&](int tail, int head) {
    std::vector<Integer> lengths{*rc::gen::inRange<Integer>(0, 12)}, thresholds{0};
    while (lengths.back() > 0 && *rc::gen::inRange(0, 4) > 0) {
      lengths.push_back(*rc::gen::inRange<Integer>(0, lengths.back()));
      thresholds.push_back(thresholds.back() + *rc::gen::inRange<Integer>(1, 5));
    }
    network.add_arc(tail, head, lengths, thresholds);
  };
  for (int v = 1; v < network.num_nodes; ++v) add(*rc::gen::inRange(0, v), v);
  for (int v = 0; v < network.sink; ++v) add(v, *rc::gen::inRange(v + 1, network.num_nodes));
  for (int more = *rc::gen::inRange(0, 8); more > 0; --more) {
    const int tail = *rc::gen::inRange(0, network.sink);
    add(tail, *rc::gen::inRange(tail + 1, network.num_nodes));
  }
  return network;
}

/// The flow is conserved, and each arc has a span that is optimal at its flow.
void expect_optimal(const ParametricNetwork& network, const SuccessiveLongestPaths& paths) {
  std::vector<Integer> excess(network.num_nodes, 0);
  for (int a = 0; a < network.num_arcs(); ++a) {
    const Integer flow = paths.flow(a);
    excess[network.tail[a]] -= flow;
    excess[network.head[a]] += flow;
    const Integer span = paths.time(network.head[a]) - paths.time(network.tail[a]);
    const int first = network.first[a], last = network.first[a + 1] - 1;
    int at = first;
    while (at < last && network.threshold[at + 1] <= flow) ++at;
    RC_ASSERT(flow >= 0);
    RC_ASSERT(span >= network.length[at]);
    if (flow > network.threshold[at]) RC_ASSERT(span == network.length[at]);
    if (flow == network.threshold[at] && at > first) RC_ASSERT(span <= network.length[at - 1]);
    const auto [longer, shorter] = paths.position(a);
    RC_ASSERT(span >= network.length[first + shorter]);
    if (flow > 0) RC_ASSERT(span <= network.length[first + longer]);
  }
  RC_ASSERT(excess[network.sink] == paths.flow_value());
  RC_ASSERT(paths.time(network.source) == 0);
  for (int v = 1; v < network.sink; ++v) RC_ASSERT(excess[v] == 0);
}

RC_GTEST_PROP(SuccessiveLongestPaths, FindTheCurveOfTheSimplex, ()) {
  const ParametricNetwork network = random_network();
  ParametricLongestPath simplex(network);
  SuccessiveLongestPaths paths(network);
  RC_ASSERT(paths.deadline() == simplex.deadline());
  StopCheck never;
  for (bool reached = true; reached;) {
    Integer costs[2] = {0, 0};
    const Integer from = simplex.deadline(), target = from - *rc::gen::inRange<Integer>(1, 5);
    const auto lower = [&](auto& sweep, Integer& cost) {
      Integer last = from;
      return sweep.lower_deadline(
          target,
          [&](Integer deadline, Integer flow) {
            cost += flow * (last - deadline);
            last = deadline;
          },
          never);
    };
    reached = lower(simplex, costs[0]);
    RC_ASSERT(lower(paths, costs[1]) == reached);
    RC_ASSERT(paths.deadline() == simplex.deadline());
    RC_ASSERT(costs[0] == costs[1]);
    expect_optimal(network, paths);
  }
}

}  // namespace
}  // namespace perseus::graph
