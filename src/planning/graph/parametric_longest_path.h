// Parametric longest path with convex arc lengths: the dual of project crashing, as ONE parametric min-cost flow.
//
// Problem: a directed acyclic graph with a source and a sink. Arc a can be shortened: its lengths
//            length[0] > length[1] > ... > length[k]  become available at the prices  threshold[1] < ... < threshold[k]
//          (units of cost per unit of length, all > 0). The cost of giving arc a the span
//          d = potential[head] - potential[tail] is convex, piecewise linear and decreasing in d, with slope
//          -threshold[j] between length[j] and length[j-1], zero beyond length[0], infinite below length[k]. Find for
//          every deadline T the potentials with potential[sink] - potential[source] <= T and the least total cost C(T).
// Method:  C is convex and piecewise linear. Its dual is a flow of value F = -dC/dT from source to sink in which an arc
//          that carries x has length[j] while threshold[j] <= x <= threshold[j+1]. Starting from F = 0 (every arc at
//          its longest), the parametric network simplex raises F: the flow grows along the tree path from source to
//          sink until an arc reaches a threshold and leaves the tree; then the sink's side of the tree moves closer by
//          the least slack across the cut, and the arc without slack enters. Every such move is a linear piece of C.
//          The leaving arc is the first blocking one from the source, so that the many ties of identical microbatches
//          do not cycle. Speed: 19 of 20 pivots change neither the flow nor much of the cut, so the cost of a pivot
//          depends only on what changes: nodes that change sides, and the changed part of the path. Times of the sink's
//          side are stored plus the total decrease of the deadline so far, hence they need no update when that side
//          moves. The slack of an arc across the cut is `key - decrease`, with a key that stays the same while the
//          arc's ends stay on their sides. A list holds the arcs across the cut, some tens; those of nodes that change
//          sides may join it.
// Input:   integers only (callers choose the quantum); lengths >= 0; thresholds and their sums must stay below 2^61.
// Output:  potentials, flow and deadline after each call of lower_deadline(); exact, without tolerances.
// Errors:  none; a node that the source does not reach or a cycle is a programming error (checked).
// Cost:    per pivot, the tree path from source to sink, the arcs of the nodes that change sides, and those across the
//          cut.
// Threads: one thread per object.
// Source:  Phillips & Dessouky 1977 (paper appendix on GetNextSchedule: each of its minimum cuts is one move here);
//          Cunningham 1976 (strongly feasible trees).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/stop_check.h"

namespace perseus::graph {

using Integer = std::int64_t;

/// The arcs, in any order, as arrays: arc a has lengths length[first[a]..first[a+1]) and equally many thresholds,
/// threshold[first[a]] = 0 being the price of its longest length.
struct ParametricNetwork {
  int num_nodes = 0;
  int source = 0;
  int sink = 0;
  std::vector<int> tail, head;
  std::vector<int> first{0};
  std::vector<Integer> length, threshold;

  [[nodiscard]] int num_arcs() const { return static_cast<int>(tail.size()); }
  /// Adds an arc with the given lengths (decreasing) and thresholds (0, then increasing); returns its index.
  int add_arc(int from, int to, std::span<const Integer> lengths, std::span<const Integer> thresholds);
  /// Adds an arc of one fixed length.
  int add_arc(int from, int to, Integer fixed_length);
};

class ParametricLongestPath {
 public:
  /// The network must outlive this object.
  explicit ParametricLongestPath(const ParametricNetwork& network);

  /// Current deadline: time(sink). Starts at the longest path with every arc at its longest.
  [[nodiscard]] Integer deadline() const { return longest_ - decrease_; }
  /// Flow value F: the cost of lowering the deadline by one more unit.
  [[nodiscard]] Integer flow_value() const { return flow_value_; }
  /// Lowers the deadline to `target`, or to the least possible one if that comes first; false in the second case.
  /// Calls move(deadline_after, flow_value) for every linear piece passed (whole or in part), in order.
  /// If `check` stops the sweep, it returns early: test check.stopped().
  template <class OnMove>
  bool lower_deadline(Integer target, OnMove&& move, StopCheck& check = StopCheck::never());

  /// Event time of a node, the source's being 0. Optimal for the current deadline.
  [[nodiscard]] Integer time(int node) const { return events_[node].stored - (sink_side_[node] != 0 ? decrease_ : 0); }
  /// Flow on an arc: an optimal dual solution for the current deadline.
  [[nodiscard]] Integer flow(int arc) const { return flow_[arc]; }
  /// Position of an arc's span: at length[longer] if longer == shorter, otherwise between the two lengths (indices into
  /// the arc's lengths).
  struct Position {
    int longer, shorter;
  };
  [[nodiscard]] Position position(int arc) const {
    const int segment = segment_[arc];
    const bool between = arcs_[arc].least != arcs_[arc].most && segment > 0;
    return {between ? segment - 1 : segment, segment};
  }
  [[nodiscard]] long pivots() const { return pivots_; }

 private:
  static constexpr Integer kUnlimited = std::numeric_limits<Integer>::max() / 2;
  static constexpr Integer kBig = kUnlimited / 2;

  // A node and the tree arc to its parent. `down` and `up` are the arc's residual capacities parent->node and back.
  struct Node {
    int parent = -1;
    int parent_arc = -1;
    Integer down = 0;
    Integer up = 0;
  };
  // The fields that a move between the sides accesses, stored together.
  struct Event {
    Integer stored = 0;  // time, plus decrease_ on the sink's side
    int next = -1;       // in preorder of the tree, a circular list
    int first_arc = 0;   // into arcs_at_
  };
  // The span of an arc outside the tree lies between `least` and `most`; of a tree arc it is exactly both.
  struct Arc {
    int tail, head;
    Integer least, most;
  };

  void collect_arcs();
  /// Earliest time of every node; the arc that decides it becomes its tree arc. Returns a topological order.
  std::vector<int> set_earliest_times();
  /// Links the nodes of the tree in preorder, children in the given order.
  void link_preorder(const std::vector<int>& order);
  bool choose_leaving();  // pushes flow if nothing blocks; false if F can grow without limit (the least deadline)
  bool push_flow();
  void choose_entering();  // least slack across the cut
  void exchange();         // entering replaces leaving in the tree
  void reroute(int new_parent, int new_root);
  void reroot(int new_root, int new_parent, int arc, int arc_segment);
  void move_sides(int top, int except, bool to_sink_side);
  void set_nonbasic(int arc, int segment);
  void set_basic(int node, int parent, int arc, int segment);
  [[nodiscard]] Integer key(const Arc& arc) const;

  const ParametricNetwork& network_;
  std::vector<Node> nodes_;
  std::vector<Arc> arcs_;
  std::vector<int> segment_;   // of a tree arc: its current length; of another: the segment whose threshold is its flow
  std::vector<Integer> flow_;  // per arc
  std::vector<Event> events_;  // per node, and one more that ends arcs_at_
  std::vector<unsigned char> sink_side_;  // per node
  struct ArcAt {
    int arc, other;  // end
  };
  std::vector<ArcAt> arcs_at_;        // the arcs of a node, from first_arc on
  std::vector<int> previous_, last_;  // in preorder: the node before, the last node of its subtree
  std::vector<int> toward_sink_;      // next node on the tree path from source to sink; -1 off that path
  Integer longest_ = 0, decrease_ = 0, flow_value_ = 0;

  int leaving_ = -1;    // node whose parent arc leaves; -1: none chosen yet
  int entering_ = -1;   // arc
  Integer slack_ = 0;   // remaining decrease before `entering_` enters
  int attached_ = -1;   // root of the subtree that the last exchange moved: the sink's side of the last cut
  int unchecked_ = -1;  // path nodes before this one do not block
  long pivots_ = 0;

  std::vector<int> crossing_;          // arcs across the cut, and some that were
  std::vector<unsigned char> listed_;  // per arc: in crossing_
  std::vector<int> moved_;             // the nodes that changed sides last
};

template <class OnMove>
bool ParametricLongestPath::lower_deadline(Integer target, OnMove&& move, StopCheck& check) {
  const long cost_of_pivot = 500 + network_.num_nodes / 4;  // few pivots move every node
  while (deadline() > target) {
    if (check.stop(cost_of_pivot)) return true;
    if (leaving_ < 0) {
      if (!choose_leaving()) return false;
      choose_entering();
    }
    const Integer step = std::min(slack_, deadline() - target);
    if (step > 0) {
      decrease_ += step;
      slack_ -= step;
      move(deadline(), flow_value_);
    }
    if (slack_ == 0) exchange();
  }
  return true;
}

}  // namespace perseus::graph
