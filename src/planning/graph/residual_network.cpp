#include "planning/graph/residual_network.h"

#include <algorithm>

namespace perseus::graph {

ResidualNetwork::ResidualNetwork(int num_nodes, const std::vector<std::pair<int, int>>& ends)
    : first_slot_(num_nodes + 1, 0),
      slots_(2 * ends.size()),
      slot_of_arc_(ends.size()),
      level_(num_nodes, -1),
      current_(num_nodes, 0) {
  for (const auto& [tail, head] : ends) {
    ++first_slot_[tail + 1];
    ++first_slot_[head + 1];
  }
  for (int node = 0; node < num_nodes; ++node) first_slot_[node + 1] += first_slot_[node];
  std::vector<int> next(first_slot_.begin(), first_slot_.end() - 1);
  for (std::size_t arc = 0; arc < ends.size(); ++arc) {
    const auto [tail, head] = ends[arc];
    const int there = next[tail]++;
    const int back = next[head]++;
    slots_[there] = {head, back, 0};
    slots_[back] = {tail, there, 0};
    slot_of_arc_[arc] = there;
  }
  queue_.reserve(num_nodes);
}

void ResidualNetwork::set(int arc, std::int64_t forward, std::int64_t backward) {
  Slot& slot = slots_[slot_of_arc_[arc]];
  slot.residual = forward;
  slots_[slot.mate].residual = backward;
}

std::optional<std::int64_t> ResidualNetwork::augment(int source, int sink) {
  std::int64_t total = 0;
  while (find_levels(source, sink)) {
    const auto sent = send_blocking_flow(source, sink);
    if (!sent) return std::nullopt;
    total += *sent;
  }
  return total;
}

bool ResidualNetwork::find_levels(int source, int sink) {
  std::ranges::fill(level_, -1);
  queue_.clear();
  queue_.push_back(source);
  level_[source] = 0;
  for (std::size_t at = 0; at < queue_.size(); ++at) {
    const int node = queue_[at];
    for (int s = first_slot_[node]; s < first_slot_[node + 1]; ++s) {
      const Slot& slot = slots_[s];
      if (slot.residual == 0 || level_[slot.head] >= 0) continue;
      level_[slot.head] = level_[node] + 1;
      if (slot.head == sink) return true;
      queue_.push_back(slot.head);
    }
  }
  return false;
}

std::optional<std::int64_t> ResidualNetwork::send_blocking_flow(int source, int sink) {
  std::copy(first_slot_.begin(), first_slot_.end() - 1, current_.begin());
  std::int64_t total = 0;
  path_.clear();
  int node = source;
  while (true) {
    if (node == sink) {
      std::int64_t amount = kUnbounded;
      for (const int s : path_) amount = std::min(amount, slots_[s].residual);
      if (amount == kUnbounded) return std::nullopt;
      total += amount;
      // Continue from the first arc that is now full.
      std::size_t keep = path_.size();
      for (std::size_t k = path_.size(); k-- > 0;) {
        Slot& slot = slots_[path_[k]];
        Slot& back = slots_[slot.mate];
        if (slot.residual != kUnbounded) slot.residual -= amount;
        if (back.residual != kUnbounded) back.residual += amount;
        if (slot.residual == 0) keep = k;
      }
      node = slots_[slots_[path_[keep]].mate].head;
      path_.resize(keep);
      continue;
    }
    int& s = current_[node];
    const int end = first_slot_[node + 1];
    while (s < end && (slots_[s].residual == 0 || level_[slots_[s].head] != level_[node] + 1)) ++s;
    if (s < end) {
      path_.push_back(s);
      node = slots_[s].head;
    } else if (node == source) {
      return total;
    } else {  // a dead end: step back and do not visit it again
      level_[node] = -1;
      node = slots_[slots_[path_.back()].mate].head;
      path_.pop_back();
      ++current_[node];
    }
  }
}

}  // namespace perseus::graph
