#include "planning/graph/bounded_max_flow.h"

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace perseus::graph {
namespace {

std::vector<std::pair<int, int>> ends_of(const std::vector<BoundedMaxFlow::Arc>& arcs) {
  std::vector<std::pair<int, int>> ends;
  ends.reserve(arcs.size());
  for (const auto& arc : arcs) ends.emplace_back(arc.tail, arc.head);
  return ends;
}

}  // namespace

BoundedMaxFlow::BoundedMaxFlow(int num_nodes, int source, int sink, std::vector<Arc> arcs)
    : source_(source), sink_(sink), arcs_(std::move(arcs)), network_(num_nodes, ends_of(arcs_)), excess_(num_nodes, 0) {
  PERSEUS_CHECK(source != sink, "source and sink are different nodes");
  for (int k = 0; k < static_cast<int>(arcs_.size()); ++k) {
    const Arc bounds = arcs_[k];
    PERSEUS_CHECK(bounds.head != source && bounds.tail != sink, "no arc enters the source or leaves the sink");
    arcs_[k].lower = 0;
    set_bounds(k, bounds.lower, bounds.upper);
  }
}

std::int64_t BoundedMaxFlow::flow(int arc) const { return arcs_[arc].lower + network_.backward(arc); }

std::int64_t BoundedMaxFlow::value() const {
  std::int64_t out = 0;
  for (int k = 0; k < static_cast<int>(arcs_.size()); ++k) {
    if (arcs_[k].tail == source_) out += flow(k);
    if (arcs_[k].head == source_) out -= flow(k);
  }
  return out;
}

void BoundedMaxFlow::set_bounds(int k, std::int64_t lower, std::int64_t upper) {
  PERSEUS_CHECK(0 <= lower && lower <= upper && lower != kUnbounded, "0 <= lower <= upper");
  Arc& arc = arcs_[k];
  const std::int64_t before = flow(k);
  const std::int64_t after = std::clamp(before, lower, upper);
  arc.lower = lower;
  arc.upper = upper;
  network_.set(k, upper == kUnbounded ? kUnbounded : upper - after, after - lower);
  if (after == before) return;
  excess_[arc.head] += after - before;
  excess_[arc.tail] -= after - before;
  feasible_ = false;
}

FlowOutcome BoundedMaxFlow::solve() {
  if (!feasible_ && !restore_feasibility()) return FlowOutcome::infeasible;
  return network_.augment(source_, sink_) ? FlowOutcome::maximum : FlowOutcome::unbounded;
}

bool BoundedMaxFlow::restore_feasibility() {
  const int dummy_source = static_cast<int>(excess_.size());
  const int dummy_sink = dummy_source + 1;
  auto ends = ends_of(arcs_);
  const int return_arc = static_cast<int>(ends.size());
  ends.emplace_back(sink_, source_);
  for (int node = 0; node < dummy_source; ++node) {
    if (excess_[node] > 0) ends.emplace_back(dummy_source, node);
    if (excess_[node] < 0) ends.emplace_back(node, dummy_sink);
  }
  ResidualNetwork network(dummy_sink + 1, ends);
  for (int k = 0; k < return_arc; ++k) network.set(k, network_.forward(k), network_.backward(k));
  network.set(return_arc, kUnbounded, value() + excess_[source_]);  // the value before bounds changed
  std::int64_t needed = 0;
  for (int k = return_arc + 1; k < static_cast<int>(ends.size()); ++k) {
    const bool is_excess = ends[k].first == dummy_source;
    const std::int64_t amount = is_excess ? excess_[ends[k].second] : -excess_[ends[k].first];
    network.set(k, amount, 0);
    if (is_excess) needed += amount;
  }
  const auto sent = network.augment(dummy_source, dummy_sink);
  PERSEUS_CHECK(sent.has_value(), "arcs from the dummy source are bounded");
  if (*sent != needed) return false;
  for (int k = 0; k < return_arc; ++k) network_.set(k, network.forward(k), network.backward(k));
  std::ranges::fill(excess_, 0);
  feasible_ = true;
  return true;
}

}  // namespace perseus::graph
