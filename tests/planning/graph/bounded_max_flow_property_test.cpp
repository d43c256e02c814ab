// The maximum flow with lower bounds against enumeration of all cuts of tiny graphs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "planning/graph/bounded_max_flow.h"

namespace perseus::graph {
namespace {

using Arc = BoundedMaxFlow::Arc;
constexpr auto kUnbounded = BoundedMaxFlow::kUnbounded;

Arc random_bounds(int tail, int head) {
  const std::int64_t lower = *rc::gen::elementOf(std::vector<std::int64_t>{0, 0, 1, 2, 4});
  const std::int64_t slack = *rc::gen::elementOf(std::vector<std::int64_t>{kUnbounded, 0, 1, 3, 7});
  const std::int64_t upper = slack == kUnbounded ? kUnbounded : lower + slack;
  return {tail, head, lower, upper};
}

/// Node 0 is the source, the last the sink.
std::vector<Arc> random_arcs(int num_nodes) {
  std::vector<Arc> arcs;
  const int count = *rc::gen::inRange(1, 14);
  for (int k = 0; k < count; ++k) {
    const int tail = *rc::gen::inRange(0, num_nodes - 1);
    const int head = *rc::gen::inRange(1, num_nodes);
    if (tail != head) arcs.push_back(random_bounds(tail, head));
  }
  return arcs;
}

struct Truth {
  FlowOutcome outcome = FlowOutcome::unbounded;
  std::int64_t value = kUnbounded;
  unsigned smallest_source_side = 0;  // bit per node
};

/// Hoffman: a flow exists iff no node set must send out more than can come in, where t -> s carries anything.
/// Ford & Fulkerson: then its greatest value is that of the least cut.
Truth enumerate(int num_nodes, const std::vector<Arc>& arcs) {
  const unsigned source = 1U, sink = 1U << (num_nodes - 1);
  Truth truth;
  for (unsigned set = 0; set < 1U << num_nodes; ++set) {
    const bool separates = (set & source) != 0 && (set & sink) == 0;
    std::int64_t lower_out = 0, lower_in = 0, upper_in = 0, upper_out = 0;
    bool in_unbounded = separates, out_unbounded = false;
    for (const Arc& arc : arcs) {
      const bool from = (set >> arc.tail & 1U) != 0, to = (set >> arc.head & 1U) != 0;
      const bool is_unbounded = arc.upper == kUnbounded;
      if (from && !to) {
        lower_out += arc.lower;
        out_unbounded |= is_unbounded;
        if (!is_unbounded) upper_out += arc.upper;
      }
      if (!from && to) {
        lower_in += arc.lower;
        in_unbounded |= is_unbounded;
        if (!is_unbounded) upper_in += arc.upper;
      }
    }
    if (!in_unbounded && lower_out > upper_in) return {FlowOutcome::infeasible, 0, 0};
    if (!separates || out_unbounded) continue;
    const std::int64_t cut = upper_out - lower_in;
    if (cut < truth.value) {
      truth = {FlowOutcome::maximum, cut, set};
    } else if (cut == truth.value) {
      truth.smallest_source_side &= set;
    }
  }
  return truth;
}

void expect_truth(BoundedMaxFlow& flow, int num_nodes, const std::vector<Arc>& arcs) {
  const Truth truth = enumerate(num_nodes, arcs);
  const FlowOutcome outcome = flow.solve();
  RC_TAG(static_cast<int>(outcome));
  RC_ASSERT(outcome == truth.outcome);
  if (outcome != FlowOutcome::maximum) return;
  RC_ASSERT(flow.value() == truth.value);
  std::vector<std::int64_t> excess(num_nodes, 0);
  for (int k = 0; k < static_cast<int>(arcs.size()); ++k) {
    RC_ASSERT(arcs[k].lower <= flow.flow(k));
    RC_ASSERT(flow.flow(k) <= arcs[k].upper);
    excess[arcs[k].tail] -= flow.flow(k);
    excess[arcs[k].head] += flow.flow(k);
  }
  for (int node = 1; node < num_nodes - 1; ++node) RC_ASSERT(excess[node] == 0);
  for (int node = 0; node < num_nodes; ++node) {
    RC_ASSERT(flow.on_source_side(node) == ((truth.smallest_source_side >> node & 1U) != 0));
  }
}

RC_GTEST_PROP(BoundedMaxFlowProperty, IsTheLeastCut, ()) {
  const int num_nodes = *rc::gen::inRange(2, 7);
  const auto arcs = random_arcs(num_nodes);
  BoundedMaxFlow flow(num_nodes, 0, num_nodes - 1, arcs);
  expect_truth(flow, num_nodes, arcs);
}

RC_GTEST_PROP(BoundedMaxFlowProperty, IsTheLeastCutAgainAfterBoundsChange, ()) {
  const int num_nodes = *rc::gen::inRange(2, 6);
  auto arcs = random_arcs(num_nodes);
  RC_PRE(!arcs.empty());
  BoundedMaxFlow flow(num_nodes, 0, num_nodes - 1, arcs);
  for (int round = 0; round < 4; ++round) {
    expect_truth(flow, num_nodes, arcs);
    const int changes = *rc::gen::inRange(1, 4);
    for (int k = 0; k < changes; ++k) {
      const auto which = *rc::gen::inRange<std::size_t>(0, arcs.size());
      arcs[which] = random_bounds(arcs[which].tail, arcs[which].head);
      flow.set_bounds(static_cast<int>(which), arcs[which].lower, arcs[which].upper);
    }
  }
}

}  // namespace
}  // namespace perseus::graph
