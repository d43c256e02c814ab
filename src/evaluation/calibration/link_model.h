// Model of a pipeline's links: the latency of each transfer, and what a transfer delays besides its receiver.
//
// Input:   ranks of a pipeline with one stage per rank; a transfer goes from a rank to one of its neighbors. Ranks per
//          node, where known; by default half of the ranks, because with two equal nodes the slow boundary is the
//          middle one.
// Output:  the number of the latency that a transfer has, 0 .. num_latencies() - 1.
#pragma once

#include <span>
#include <string_view>

#include "planning/model/transfer_latency.h"

namespace perseus::calibration {

enum class LinkDetail { one, per_node, per_boundary, per_direction };

constexpr std::string_view name_of(LinkDetail detail) {
  switch (detail) {
    case LinkDetail::one:
      return "one latency for all boundaries";
    case LinkDetail::per_node:
      return "one latency within nodes, one between nodes";
    case LinkDetail::per_boundary:
      return "one latency per boundary";
    case LinkDetail::per_direction:
      break;
  }
  return "one latency per boundary and direction";
}

struct LinkModel {
  LinkDetail detail = LinkDetail::one;
  int num_ranks = 2;
  int ranks_per_node = 1;

  [[nodiscard]] int num_boundaries() const { return num_ranks - 1; }
  [[nodiscard]] int num_latencies() const {
    if (num_ranks < 2 || detail == LinkDetail::one) return 1;
    if (detail == LinkDetail::per_node) return 2;
    return detail == LinkDetail::per_boundary ? num_boundaries() : 2 * num_boundaries();
  }
  [[nodiscard]] bool between_nodes(int boundary) const { return (boundary + 1) % ranks_per_node == 0; }
  [[nodiscard]] int latency_of(int from_rank, int to_rank) const {
    const int boundary = from_rank < to_rank ? from_rank : to_rank;
    if (detail == LinkDetail::one) return 0;
    if (detail == LinkDetail::per_node) return between_nodes(boundary) ? 1 : 0;
    return detail == LinkDetail::per_boundary ? boundary : 2 * boundary + (from_rank < to_rank ? 0 : 1);
  }
  /// True if this detail equals one latency for all: there is one boundary, or all are of one kind.
  [[nodiscard]] bool is_one() const {
    switch (detail) {
      case LinkDetail::one:
        return true;
      case LinkDetail::per_node:
        return ranks_per_node >= num_ranks || ranks_per_node < 2 || num_ranks < 3;
      case LinkDetail::per_boundary:
        return num_ranks < 3;
      case LinkDetail::per_direction:
        break;
    }
    return num_ranks < 2;
  }
  [[nodiscard]] model::TransferLatency latencies(std::span<const double> seconds) const;
};

/// What a transfer delays besides its receiver.
enum class Sending {
  waits,                ///< its sender, which computes again when the transfer has ended
  computes,             ///< nothing: a link carries any number of transfers at a time
  queues,               ///< the link's next transfer in the same direction: a link carries one at a time
  waits_within_nodes,   ///< its sender, if the transfer stays within a node; see docs/decisions/0039
  waits_between_nodes,  ///< its sender, if it does not
};

constexpr std::string_view name_of(Sending sending) {
  switch (sending) {
    case Sending::waits:
      return "senders wait";
    case Sending::computes:
      return "senders compute meanwhile";
    case Sending::queues:
      return "senders compute meanwhile, transfers queue";
    case Sending::waits_within_nodes:
      return "senders wait within nodes";
    case Sending::waits_between_nodes:
      break;
  }
  return "senders wait between nodes";
}

/// Whether the sender of a transfer over `boundary` waits for its end.
constexpr bool waits(Sending sending, const LinkModel& links, int boundary) {
  if (sending == Sending::waits_within_nodes) return !links.between_nodes(boundary);
  if (sending == Sending::waits_between_nodes) return links.between_nodes(boundary);
  return sending == Sending::waits;
}

}  // namespace perseus::calibration
