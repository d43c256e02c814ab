#include "planning/graph/successive_longest_paths.h"

#include <functional>

#include "base/adjacency_lists.h"
#include "base/result.h"

namespace perseus::graph {
namespace {

constexpr int kPrefetched = 4;  // entries in a cache line

}  // namespace

SuccessiveLongestPaths::SuccessiveLongestPaths(const ParametricNetwork& network)
    : network_(network),
      nodes_(network.num_nodes + 1),
      entry_along_(network.num_arcs()),
      entry_against_(network.num_arcs()) {
  collect_entries();
  set_earliest_times();
}

void SuccessiveLongestPaths::collect_entries() {
  const int num_arcs = network_.num_arcs();
  for (int a = 0; a < num_arcs; ++a) {
    ++nodes_[network_.head[a] + 1].first_entry;
    ++nodes_[network_.tail[a] + 1].first_entry;
  }
  std::vector<int> at;
  for (int v = 0; v < network_.num_nodes; ++v) {
    nodes_[v + 1].first_entry += nodes_[v].first_entry;
    at.push_back(nodes_[v].first_entry);
  }
  entries_.resize(2 * static_cast<std::size_t>(num_arcs) + kPrefetched + 1);  // reach() prefetches beyond the last
  for (int a = 0; a < num_arcs; ++a) {
    const int tail = network_.tail[a], head = network_.head[a];
    entry_along_[a] = at[head]++;
    entry_against_[a] = at[tail]++;
    const Integer longest = network_.length[network_.first[a]];
    arcs_.push_back({tail, head, 0, 0, 0, longest, longest});
    entries_[entry_along_[a]] = {tail, a, longest};
    entries_[entry_against_[a]] = {head, ~a, -kUnlimited};
  }
}

void SuccessiveLongestPaths::set_earliest_times() {
  const int n = network_.num_nodes;
  const AdjacencyLists<int> arcs_from(
      n, network_.num_arcs(), [&](int a) { return network_.tail[a]; }, [](int a) { return a; });
  std::vector<int> waiting(n, 0), order{network_.source};
  for (const int head : network_.head) ++waiting[head];
  PERSEUS_CHECK(waiting[network_.source] == 0, "no arc may enter the source");
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int v = order[i];
    for (const int a : arcs_from.of(v)) {
      const int w = network_.head[a];
      nodes_[w].time = std::max(nodes_[w].time, nodes_[v].time + network_.length[network_.first[a]]);
      if (--waiting[w] == 0) order.push_back(w);
    }
  }
  PERSEUS_CHECK(static_cast<int>(order.size()) == n,
                "the network has a cycle, or a node that the source does not reach");
}

SuccessiveLongestPaths::Position SuccessiveLongestPaths::position(int arc) const {
  const Arc& a = arcs_[arc];
  if (a.segment == 0 || a.flow > a.threshold) return {a.segment, a.segment};
  const Integer span = time(a.head) - time(a.tail);
  if (span <= a.length) return {a.segment, a.segment};
  return {a.segment - 1, span >= a.longer ? a.segment - 1 : a.segment};
}

void SuccessiveLongestPaths::reach(int node, Integer distance, int entry) {
  nodes_[node].search = search_;
  nodes_[node].distance = distance;
  nodes_[node].toward_sink = entry;
  reached_.push_back(node);
  unscanned_.push_back(node);
  // A search of a large network mostly waits for memory: a quarter less with these.
  __builtin_prefetch(&entries_[nodes_[node].first_entry]);
  __builtin_prefetch(&entries_[nodes_[node].first_entry + kPrefetched]);
}

bool SuccessiveLongestPaths::scan(int node, Integer distance) {
  const Integer time = nodes_[node].time;
  const int end = nodes_[node + 1].first_entry;
  for (int k = nodes_[node].first_entry; k < end; ++k) {
    const Entry& entry = entries_[k];
    if (entry.least == -kUnlimited) continue;
    const Node& from = nodes_[entry.from];
    if (from.search == search_) continue;
    const Integer slack = time - from.time - entry.least;
    if (slack == 0) {
      reach(entry.from, distance, k);
      if (entry.from == network_.source) return false;
    } else if (distance + slack <= limit_) {
      waiting_.push_back({distance + slack, k});
      if (ordered_) std::ranges::push_heap(waiting_, std::greater{});
    }
  }
  return true;
}

void SuccessiveLongestPaths::search() {
  ++search_;
  found_ = true;
  passed_ = 0;
  slack_ = 0;
  reached_.clear();
  unscanned_.clear();
  waiting_.clear();
  ordered_ = false;
  const auto is_reached = [this](const Waiting& w) { return nodes_[entries_[w.entry].from].search == search_; };
  reach(network_.sink, 0, -1);
  for (;;) {
    while (!unscanned_.empty()) {
      const int v = unscanned_.back();
      unscanned_.pop_back();
      if (!scan(v, slack_)) return;
    }
    if (!ordered_) {
      std::erase_if(waiting_, is_reached);
      std::ranges::make_heap(waiting_, std::greater{});
      ordered_ = true;
    }
    while (!waiting_.empty() && is_reached(waiting_.front())) {
      std::ranges::pop_heap(waiting_, std::greater{});
      waiting_.pop_back();
    }
    if (waiting_.empty()) {
      PERSEUS_CHECK(limit_ < kUnlimited, "the sink is not reachable from the source");
      slack_ = limit_;
      limit_ = limit_ < kUnlimited / 8 ? 8 * limit_ : kUnlimited;
      return;
    }
    const Waiting nearest = waiting_.front();
    slack_ = nearest.distance;
    reach(entries_[nearest.entry].from, slack_, nearest.entry);
    if (reached_.back() == network_.source) return;
  }
}

int SuccessiveLongestPaths::head_of(int entry) const {
  const int arc = entries_[entry].arc;
  return arc >= 0 ? network_.head[arc] : network_.tail[~arc];
}

Integer SuccessiveLongestPaths::capacity(int entry) const {
  const int arc = entries_[entry].arc;
  if (arc >= 0) {
    const int next = network_.first[arc] + arcs_[arc].segment + 1;
    return next == network_.first[arc + 1] ? kUnlimited : network_.threshold[next] - arcs_[arc].flow;
  }
  const Arc& a = arcs_[~arc];
  return a.flow - (a.flow > a.threshold ? a.threshold : network_.threshold[network_.first[~arc] + a.segment - 1]);
}

void SuccessiveLongestPaths::set_flow(int arc, Integer flow) {
  Arc& a = arcs_[arc];
  const int first = network_.first[arc], last = network_.first[arc + 1] - 1;
  int at = first + a.segment;
  while (at < last && network_.threshold[at + 1] <= flow) ++at;
  while (network_.threshold[at] > flow) --at;
  a = {a.tail,
       a.head,
       at - first,
       flow,
       network_.threshold[at],
       network_.length[at],
       network_.length[std::max(first, at - 1)]};
  entries_[entry_along_[arc]].least = a.length;
  entries_[entry_against_[arc]].least = flow == 0 ? -kUnlimited : flow > a.threshold ? -a.length : -a.longer;
}

bool SuccessiveLongestPaths::augment() {
  for (const int v : reached_) nodes_[v].time -= slack_ - nodes_[v].distance;
  passed_ = 0;
  found_ = false;
  if (nodes_[network_.source].search != search_) return true;
  usual_slack_ += (slack_ - usual_slack_) / (usual_slack_ == 0 ? 1 : 8);
  limit_ = 4 * usual_slack_ + 1;
  Integer least = kUnlimited;
  for (int v = network_.source; v != network_.sink; v = head_of(nodes_[v].toward_sink)) {
    least = std::min(least, capacity(nodes_[v].toward_sink));
  }
  if (least == kUnlimited) return false;
  flow_value_ += least;
  for (int v = network_.source; v != network_.sink; v = head_of(nodes_[v].toward_sink)) {
    const int entry_arc = entries_[nodes_[v].toward_sink].arc;
    const int arc = std::max(entry_arc, ~entry_arc);
    const Integer flow = arcs_[arc].flow;
    changes_.push_back({arc, flow, flow + (entry_arc >= 0 ? least : -least)});
    set_flow(arc, changes_.back().after);
  }
  return true;
}

}  // namespace perseus::graph
