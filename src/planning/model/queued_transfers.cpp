#include "planning/model/queued_transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace perseus::model {
namespace {

/// A message of a link: its sender, and the computations of the receiving rank that wait for it.
struct Transfer {
  int sender = 0;
  std::vector<int> receivers;  ///< ascending
};
struct Link {
  Seconds latency;
  std::vector<Transfer> transfers;  ///< in the order of their senders
};
using Links = std::map<std::pair<int, int>, Link>;  // (from rank, to rank)

Links links_of(const ComputationDag& dag) {
  std::map<std::pair<int, int>, std::map<int, std::vector<int>>> receivers;  // of a link, of a sender
  Links links;
  for (const Dependency& d : dag.dependencies) {
    const std::pair ranks(dag.computations[d.before].rank, dag.computations[d.after].rank);
    if (ranks.first == ranks.second || d.latency == Seconds(0)) continue;
    receivers[ranks][d.before].push_back(d.after);
    links[ranks].latency = d.latency;
  }
  for (auto& [ranks, of_sender] : receivers) {
    for (auto& [sender, all] : of_sender) {
      std::ranges::sort(all);
      links[ranks].transfers.push_back({sender, std::move(all)});
    }
  }
  return links;
}

class QueuedTransfers {
 public:
  explicit QueuedTransfers(ComputationDag& dag) : dag_(dag), starts_(dag.computations.size()) {
    for (const std::vector<int>& order : dag.rank_order) {
      Seconds now;
      for (const int c : order) {
        starts_[c] = now;
        now += least_time(c);
      }
    }
    for (std::size_t d = 0; d < dag.dependencies.size(); ++d) {
      const Dependency& dependency = dag.dependencies[d];
      if (dag.computations[dependency.before].rank == dag.computations[dependency.after].rank) continue;
      known_.emplace(std::pair(dependency.before, dependency.after), d);
    }
  }

  /// Whether there is room for all dependencies of the link.
  bool add(const Link& link) {
    const std::vector<Transfer>& all = link.transfers;
    for (std::size_t j = 0; j + 1 < all.size(); ++j) {
      for (std::size_t k = j + 1; k < all.size(); ++k) {
        const auto queued = static_cast<double>(k - j);
        if (end(all[k].sender) - end(all[j].sender) >= queued * link.latency) break;
        for (const int receiver : all[k].receivers) {
          if (starts_[receiver] - starts_[all[k - 1].receivers.front()] >= link.latency) continue;
          depend({all[j].sender, receiver, (queued + 1) * link.latency});
        }
        if (added_ > kMostQueued) return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] Seconds least_time(int computation) const {
    const auto& options = dag_.type_of(computation).options;
    return kFaster * std::ranges::min_element(options, {}, &Measurement::time)->time;
  }
  /// Both count the rank's computations only, from the beginning of its order.
  [[nodiscard]] Seconds end(int computation) const { return starts_[computation] + least_time(computation); }

  void depend(const Dependency& dependency) {
    const auto [known, is_new] =
        known_.try_emplace(std::pair(dependency.before, dependency.after), dag_.dependencies.size());
    if (!is_new) {
      Seconds& latency = dag_.dependencies[known->second].latency;
      latency = std::max(latency, dependency.latency);
      return;
    }
    dag_.dependencies.push_back(dependency);
    ++added_;
  }

  ComputationDag& dag_;
  std::vector<Seconds> starts_;
  std::map<std::pair<int, int>, std::size_t> known_;  ///< between ranks: (before, after) -> its index
  int added_ = 0;
};

}  // namespace

Status add_queued_transfers(ComputationDag& dag) {
  const Links links = links_of(dag);
  QueuedTransfers queued(dag);
  for (const auto& [ranks, link] : links) {
    if (queued.add(link)) continue;
    return Error{ErrorCode::invalid_input,
                 fmt::format("serial_transfers: over {} pairs of transfers can queue, such as the {} from rank {} to "
                             "rank {} of {:g} s each; allowed: fewer microbatches or shorter transfers",
                             kMostQueued, link.transfers.size(), ranks.first, ranks.second, link.latency.value())};
  }
  return Ok{};
}

}  // namespace perseus::model
