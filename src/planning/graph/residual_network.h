// A residual network and the augmentation of flow through it along shortest paths (Dinic's blocking flows).
//
// Problem: given the residual capacity of each arc forward and backward, send the maximum flow between two nodes.
// Input:   int64 residual capacities >= 0, or unbounded.
// Output:  the amount sent, the remaining residual capacities, and the set of nodes that the source still reaches: the
//          smallest source side of a minimum cut.
// Errors:  none; a path of unbounded arcs is an answer.
// Cost:    O(V^2 E); O(V + E) when nothing can be sent.
// Threads: one thread per object.
// Source:  Dinic 1970.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace perseus::graph {

class ResidualNetwork {
 public:
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

  /// Arc k leads from ends[k].first to ends[k].second; all residual capacities are 0.
  ResidualNetwork(int num_nodes, const std::vector<std::pair<int, int>>& ends);

  [[nodiscard]] std::int64_t forward(int arc) const { return slots_[slot_of_arc_[arc]].residual; }
  [[nodiscard]] std::int64_t backward(int arc) const { return slots_[slots_[slot_of_arc_[arc]].mate].residual; }
  void set(int arc, std::int64_t forward, std::int64_t backward);

  /// Sends the maximum and returns it, or nullopt if there is an unbounded path.
  std::optional<std::int64_t> augment(int source, int sink);
  /// True if the source of the last augment(), which sent the maximum, still reaches the node.
  [[nodiscard]] bool reached(int node) const { return level_[node] >= 0; }

 private:
  struct Slot {  // one direction of one arc, stored with its tail
    int head;
    int mate;  // the other direction
    std::int64_t residual;
  };
  bool find_levels(int source, int sink);
  std::optional<std::int64_t> send_blocking_flow(int source, int sink);

  std::vector<int> first_slot_;  // per node, and one past the end
  std::vector<Slot> slots_;
  std::vector<int> slot_of_arc_;
  std::vector<int> level_;  // distance from the source, -1 where not reached
  std::vector<int> queue_;
  std::vector<int> current_;  // per node: the slot to try next
  std::vector<int> path_;     // slots from the source
};

}  // namespace perseus::graph
