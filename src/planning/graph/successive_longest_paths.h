// The parametric longest path again, for large networks whose thresholds are multiples of one step.
//
// Problem: that of planning/graph/parametric_longest_path.h. There a pivot moves part of a tree; with many equal
//          thresholds most pivots move neither time nor price, and each costs what lies between two cuts.
// Method:  successive longest paths. The *distance* of a node is how far the sink can come closer before the node must
//          move: the least sum of slacks on a path of residual arcs to the sink. One search, Dijkstra's, in which arcs
//          without slack need no queue, finds it for all nodes that must move before the source is reached; then the
//          flow grows along that path by as much as it can carry at these lengths. There are as many searches as
//          steps between no price and the highest one: few if the step is coarse, however many computations tie.
// Input, output, errors: as there; position() compares with the span, so an arc at a vertex is never called a mix.
// Cost:    per search, the nodes that move.
// Threads: one thread per object.
// Source:  Busacker & Gowen 1960; Edmonds & Karp 1972 (potentials).
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/stop_check.h"
#include "planning/graph/parametric_longest_path.h"

namespace perseus::graph {

class SuccessiveLongestPaths {
 public:
  /// The network must outlive this object.
  explicit SuccessiveLongestPaths(const ParametricNetwork& network);

  [[nodiscard]] Integer deadline() const { return deadline_; }
  [[nodiscard]] Integer flow_value() const { return flow_value_; }
  template <class OnMove>
  bool lower_deadline(Integer target, OnMove&& move, StopCheck& check);

  [[nodiscard]] Integer time(int node) const { return nodes_[place_[node]].time; }
  [[nodiscard]] Integer flow(int arc) const { return arcs_[arc].flow; }
  struct FlowChange {
    int arc;
    Integer before, after;
  };
  /// What has changed since the last call, in order.
  [[nodiscard]] std::vector<FlowChange> take_changes() { return std::exchange(changes_, {}); }
  using Position = ParametricLongestPath::Position;
  [[nodiscard]] Position position(int arc) const;
  /// Searches so far.
  [[nodiscard]] long pivots() const { return searches_; }

 private:
  static constexpr Integer kUnlimited = std::numeric_limits<Integer>::max() / 2;
  // No distance is beyond kNoLimit but those from a node at -kFar, or along an entry of that length.
  static constexpr Integer kFar = kUnlimited / 2, kNoLimit = kFar / 2;

  struct Node {
    Integer time = 0;     // -kFar while a search that has reached the node is in progress
    int first_entry = 0;  // of entries_
  };
  // A residual arc into a node. Its slack is the time of that node minus that of `from` minus `least`.
  struct Entry {
    int from;
    int arc;        // ~arc: against its direction
    Integer least;  // -kFar: closed, as no flow can be taken back
  };
  // An arc and its flow, in a cache line: a rounding asks for the position of each.
  struct Arc {
    int tail, head;
    int segment = 0;  // the last one whose threshold the flow reaches
    Integer flow = 0, threshold = 0;
    Integer length, longer;  // of the segment, and of the one before
  };
  // A node that the search has reached, by an entry (-1: the sink) of the node reached_[parent].
  struct Reached {
    Integer sum;  // of its time before the search and its distance
    int node, entry, parent;
  };
  struct Jump {
    std::size_t at;  // in reached_
    Integer distance;
  };
  struct Waiting {
    Integer distance;
    int entry, parent;
    bool operator>(const Waiting& other) const { return distance > other.distance; }
  };

  void collect_entries();
  /// Moves nodes in memory into the order in which the last search has reached them: the next ones mostly follow it.
  void place_as_reached();
  void set_earliest_times();
  void search();
  void reach(int entry, int parent);
  /// Of a node in reached_; false if the source is reached.
  bool scan(int at);
  /// Those of reached nodes, now that the sink has come closer by passed_.
  void set_times();
  /// Ends a search: moves what it reached and raises the flow; false if that could grow without limit.
  bool augment();
  [[nodiscard]] Integer capacity(int entry) const;
  void set_flow(int arc, Integer flow);
  void set_least(int arc);

  const ParametricNetwork& network_;
  std::vector<int> place_;   // per node of the network: in nodes_, which all that follows means by a node
  std::vector<Node> nodes_;  // and one more, that ends entries_
  std::vector<Entry> entries_;
  std::vector<int> entry_along_, entry_against_;  // per arc
  std::vector<Arc> arcs_;
  Integer deadline_ = 0, flow_value_ = 0;
  std::vector<FlowChange> changes_;

  long searches_ = 0;
  bool found_ = false;            // a path, along which no flow has been sent yet
  Integer slack_ = 0;             // distance of the last node that was reached: at last of the source
  Integer passed_ = 0;            // by how much the sink has come closer since the search
  std::vector<Reached> reached_;  // by rising distance
  std::vector<Jump> jumps_;       // where it rises
  std::vector<int> unscanned_;    // in reached_; the last one first: it lies near the one before in memory
  std::vector<Waiting> waiting_;  // entries with slack; a heap once all without are done
  bool ordered_ = false;
  // Distances above this one wait for the next search: a queue of all slack would cost more than a further search.
  Integer limit_ = kNoLimit;
  Integer usual_slack_ = 0;
};

template <class OnMove>
bool SuccessiveLongestPaths::lower_deadline(Integer target, OnMove&& move, StopCheck& check) {
  const long cost_of_search = 20L * network_.num_nodes;
  while (deadline() > target) {
    if (check.stop(cost_of_search)) break;
    if (found_ && passed_ == slack_ && !augment()) return false;
    if (!found_) search();
    const Integer step = std::min(slack_ - passed_, deadline() - target);
    if (step > 0) {
      passed_ += step;
      deadline_ -= step;
      move(deadline(), flow_value_);
    }
  }
  if (found_) set_times();
  return true;
}

}  // namespace perseus::graph
