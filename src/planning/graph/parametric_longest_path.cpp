#include "planning/graph/parametric_longest_path.h"

#include <utility>

#include "base/adjacency_lists.h"
#include "base/result.h"

namespace perseus::graph {

int ParametricNetwork::add_arc(int from, int to, std::span<const Integer> lengths,
                               std::span<const Integer> thresholds) {
  tail.push_back(from);
  head.push_back(to);
  length.insert(length.end(), lengths.begin(), lengths.end());
  threshold.insert(threshold.end(), thresholds.begin(), thresholds.end());
  first.push_back(static_cast<int>(length.size()));
  return num_arcs() - 1;
}

int ParametricNetwork::add_arc(int from, int to, Integer fixed_length) {
  const Integer zero = 0;
  return add_arc(from, to, std::span(&fixed_length, 1), std::span(&zero, 1));
}

ParametricLongestPath::ParametricLongestPath(const ParametricNetwork& network)
    : network_(network),
      nodes_(network.num_nodes),
      arcs_(network.num_arcs()),
      segment_(network.num_arcs(), 0),
      flow_(network.num_arcs(), 0),
      events_(network.num_nodes + 1),
      sink_side_(network.num_nodes, 0),
      previous_(network.num_nodes),
      last_(network.num_nodes),
      toward_sink_(network.num_nodes, -1) {
  listed_.assign(network.num_arcs(), 0);
  for (int a = 0; a < network.num_arcs(); ++a) {
    arcs_[a].tail = network.tail[a];
    arcs_[a].head = network.head[a];
    set_nonbasic(a, 0);
  }
  collect_arcs();
  link_preorder(set_earliest_times());
  longest_ = events_[network.sink].stored;
  for (int v = network.sink; v != network.source; v = nodes_[v].parent) toward_sink_[nodes_[v].parent] = v;
  toward_sink_[network.sink] = network.sink;
  unchecked_ = toward_sink_[network.source];
}

void ParametricLongestPath::collect_arcs() {
  for (const Arc& arc : arcs_) {
    ++events_[arc.tail + 1].first_arc;
    ++events_[arc.head + 1].first_arc;
  }
  std::vector<int> at;
  for (int v = 0; v < network_.num_nodes; ++v) {
    events_[v + 1].first_arc += events_[v].first_arc;
    at.push_back(events_[v].first_arc);
  }
  arcs_at_.resize(2 * arcs_.size());
  for (int a = 0; a < network_.num_arcs(); ++a) {
    arcs_at_[at[arcs_[a].tail]++] = {a, arcs_[a].head};
    arcs_at_[at[arcs_[a].head]++] = {a, arcs_[a].tail};
  }
}

void ParametricLongestPath::set_nonbasic(int arc, int segment) {
  const int at = network_.first[arc] + segment;
  segment_[arc] = segment;
  arcs_[arc].least = network_.length[at];
  arcs_[arc].most = segment == 0 ? kUnlimited : network_.length[at - 1];
}

void ParametricLongestPath::set_basic(int node, int parent, int arc, int segment) {
  const int at = network_.first[arc] + segment;
  const Integer flow = flow_[arc];
  segment_[arc] = segment;
  arcs_[arc].least = arcs_[arc].most = network_.length[at];
  const Integer more = at + 1 == network_.first[arc + 1] ? kUnlimited : network_.threshold[at + 1] - flow;
  const Integer less = flow - network_.threshold[at];
  const bool away_from_parent = arcs_[arc].tail == parent;
  nodes_[node] = {parent, arc, away_from_parent ? more : less, away_from_parent ? less : more};
}

std::vector<int> ParametricLongestPath::set_earliest_times() {
  const int n = network_.num_nodes;
  const AdjacencyLists<int> arcs_from(
      n, network_.num_arcs(), [&](int a) { return arcs_[a].tail; }, [](int a) { return a; });
  std::vector<int> waiting(n, 0), order{network_.source}, deciding(n, -1);
  for (const Arc& arc : arcs_) ++waiting[arc.head];
  PERSEUS_CHECK(waiting[network_.source] == 0, "no arc may enter the source");
  order.reserve(n);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int v = order[i];
    for (const int a : arcs_from.of(v)) {
      const int w = arcs_[a].head;
      const Integer reached = events_[v].stored + arcs_[a].least;
      if (deciding[w] < 0 || reached > events_[w].stored) {
        events_[w].stored = reached;
        deciding[w] = a;
      }
      if (--waiting[w] == 0) order.push_back(w);
    }
  }
  PERSEUS_CHECK(static_cast<int>(order.size()) == n,
                "the network has a cycle, or a node that the source does not reach");
  for (const int v : order) {
    if (v != network_.source) set_basic(v, arcs_[deciding[v]].tail, deciding[v], 0);
  }
  return order;
}

void ParametricLongestPath::link_preorder(const std::vector<int>& order) {
  const int n = network_.num_nodes;
  // order[0] is the source, which has no parent.
  const AdjacencyLists<int> children(
      n, n - 1, [&](int k) { return nodes_[order[k + 1]].parent; }, [&](int k) { return order[k + 1]; });
  std::vector<int> stack{network_.source}, preorder;
  preorder.reserve(n);
  while (!stack.empty()) {
    const int v = stack.back();
    stack.pop_back();
    preorder.push_back(v);
    const std::span<const int> own = children.of(v);
    stack.insert(stack.end(), own.rbegin(), own.rend());
  }
  for (int i = 0; i < n; ++i) {
    const int v = preorder[i], w = preorder[(i + 1) % n];
    events_[v].next = w;
    previous_[w] = v;
    last_[v] = v;
  }
  for (int i = n - 1; i > 0; --i) {
    const int v = preorder[i];
    // In a backward scan of the preorder the last child comes first.
    const int p = nodes_[v].parent;
    if (last_[p] == p) last_[p] = last_[v];
  }
}

bool ParametricLongestPath::choose_leaving() {
  const int sink = network_.sink;
  int v = unchecked_;
  while (nodes_[v].down > 0 && v != sink) v = toward_sink_[v];
  if (nodes_[v].down == 0) {
    leaving_ = v;
  } else if (!push_flow()) {
    return false;
  }
  if (sink_side_[leaving_] != 0) {
    move_sides(attached_, leaving_, false);
  } else {
    move_sides(leaving_, attached_, true);
  }
  const Node& node = nodes_[leaving_];
  const int arc = node.parent_arc;
  set_nonbasic(arc, arcs_[arc].tail == node.parent ? segment_[arc] + 1 : segment_[arc]);
  return true;
}

bool ParametricLongestPath::push_flow() {
  const int sink = network_.sink;
  Integer least = kUnlimited;
  for (int v = network_.source; v != sink;) {
    v = toward_sink_[v];
    if (nodes_[v].down < least) {
      least = nodes_[v].down;
      leaving_ = v;
    }
  }
  if (least >= kBig) {
    leaving_ = -1;
    return false;
  }
  flow_value_ += least;
  for (int v = network_.source; v != sink;) {
    v = toward_sink_[v];
    if (nodes_[v].down < kBig) nodes_[v].down -= least;
    if (nodes_[v].up < kBig) nodes_[v].up += least;
    const int arc = nodes_[v].parent_arc;
    flow_[arc] += arcs_[arc].head == v ? least : -least;
  }
  return true;
}

void ParametricLongestPath::move_sides(int top, int except, bool to_sink_side) {
  if (top == except) return;
  const Integer change = to_sink_side ? decrease_ : -decrease_;
  Event* const events = events_.data();
  unsigned char* const sides = sink_side_.data();
  const unsigned char side = to_sink_side ? 1 : 0;
  const ArcAt* const arcs_at = arcs_at_.data();
  const int stop = events[last_[top]].next;
  moved_.clear();
  for (int v = top; v != stop;) {
    if (v == except) {
      v = events[last_[v]].next;
      continue;
    }
    sides[v] = side;
    events[v].stored += change;
    moved_.push_back(v);
    v = events[v].next;
  }
  for (const int v : moved_) {
    const int end = events[v + 1].first_arc;
    for (int k = events[v].first_arc; k < end; ++k) {
      const auto [a, other] = arcs_at[k];
      if (sides[other] == side || listed_[a] != 0) continue;
      listed_[a] = 1;
      crossing_.push_back(a);
    }
  }
}

Integer ParametricLongestPath::key(const Arc& arc) const {
  const Integer span = events_[arc.head].stored - events_[arc.tail].stored;
  // Arcs from the source's side to the sink's get shorter, the others longer.
  return sink_side_[arc.head] != 0 ? span - arc.least : arc.most - span;
}

void ParametricLongestPath::choose_entering() {
  Integer least = kBig;
  for (std::size_t i = 0; i < crossing_.size();) {
    const int a = crossing_[i];
    const Arc& arc = arcs_[a];
    if (sink_side_[arc.tail] == sink_side_[arc.head]) {
      listed_[a] = 0;
      crossing_[i] = crossing_.back();
      crossing_.pop_back();
      continue;
    }
    const Integer k = key(arc);
    if (k < least || (k == least && a < entering_)) {
      least = k;
      entering_ = a;
    }
    ++i;
  }
  PERSEUS_CHECK(least < kBig, "the sink is not reachable from the source");
  slack_ = least - decrease_;
}

void ParametricLongestPath::exchange() {
  ++pivots_;
  const Arc& arc = arcs_[entering_];
  const bool tail_far = sink_side_[arc.tail] != 0;
  const int new_root = tail_far ? arc.tail : arc.head, new_parent = tail_far ? arc.head : arc.tail;
  reroute(new_parent, new_root);
  reroot(new_root, new_parent, entering_, tail_far ? segment_[entering_] - 1 : segment_[entering_]);
  attached_ = new_root;
  leaving_ = -1;
  entering_ = -1;
}

// The path from source to sink now crosses the cut over new_parent -> new_root instead of the leaving arc.
void ParametricLongestPath::reroute(int new_parent, int new_root) {
  const auto clear = [this](int from, int to) {
    while (from != to) from = std::exchange(toward_sink_[from], -1);
  };
  int branch = new_parent;
  while (toward_sink_[branch] < 0) branch = nodes_[branch].parent;
  clear(toward_sink_[branch], leaving_);
  for (int v = new_parent, child = new_root;; child = v, v = nodes_[v].parent) {
    toward_sink_[v] = child;
    if (v == branch) break;
  }
  unchecked_ = toward_sink_[branch];

  int join = new_root;
  while (toward_sink_[join] < 0) join = nodes_[join].parent;
  clear(leaving_, join);
  for (int v = new_root; v != join; v = nodes_[v].parent) toward_sink_[v] = nodes_[v].parent;
}

// Hangs the subtree of `leaving_` from new_parent by its node new_root: the path between both (the stem) turns around.
void ParametricLongestPath::reroot(int new_root, int new_parent, int arc, int arc_segment) {
  const auto link = [this](int a, int b) {
    events_[a].next = b;
    previous_[b] = a;
  };
  const int old_root = leaving_;

  // Cut the subtree out of the preorder list.
  const int before = previous_[old_root], old_end = last_[old_root];
  const int after = events_[old_end].next;
  link(before, after);
  for (int w = nodes_[old_root].parent; w >= 0 && last_[w] == old_end; w = nodes_[w].parent) last_[w] = before;

  // The new subtree in preorder: old subtree(new_root), then for each further stem node its old subtree without that
  // of the stem node before it.
  int end = last_[new_root];
  int child = new_root, child_previous = previous_[new_root], child_end = end, child_after = events_[child_end].next;
  Node carried = nodes_[new_root];
  while (child != old_root) {
    const int w = carried.parent;
    const int w_previous = previous_[w], w_end = last_[w];
    const int w_after = w_end == child_end ? child_after : events_[w_end].next;
    link(end, w);
    end = child_previous;
    if (child_end != w_end) {
      link(end, child_after);
      end = w_end;
    }
    const Node w_old = nodes_[w];
    nodes_[w] = {child, carried.parent_arc, carried.up, carried.down};
    carried = w_old;
    child = w;
    child_previous = w_previous;
    child_end = w_end;
    child_after = w_after;
  }
  // All stem nodes now end where the whole subtree ends.
  for (int w = old_root;; w = nodes_[w].parent) {
    last_[w] = end;
    if (w == new_root) break;
  }

  const int following = events_[new_parent].next;
  link(new_parent, new_root);
  link(end, following);
  for (int w = new_parent; w >= 0 && last_[w] == new_parent; w = nodes_[w].parent) last_[w] = end;

  set_basic(new_root, new_parent, arc, arc_segment);
}

}  // namespace perseus::graph
