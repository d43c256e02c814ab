// Makespan of a pipeline whose links carry one transfer per direction at a time, by a simulation of ranks and links.
//
// Problem: an oracle for dependencies of transfers that queue. It shares no formula with them: a link has a queue, and
//          a message arrives when the link has carried all messages before it.
// Input:   a DAG built without latencies; seconds per computation; seconds that the link from one rank to another needs
//          per transfer.
// Errors:  none; a deadlock fails a check.
// Cost:    O(computations log computations).
// Threads: pure function.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "planning/model/computation_dag.h"

namespace perseus::testing {

class LinkQueueOracle {
 public:
  LinkQueueOracle(const model::ComputationDag& dag, std::vector<double> durations_s)
      : dag_(dag), durations_s_(std::move(durations_s)) {
    const std::size_t n = dag.computations.size();
    missing_.resize(n);
    own_.resize(n);
    for (const model::Dependency& d : dag.dependencies) {
      const int from = dag.computations[d.before].rank, to = dag.computations[d.after].rank;
      ++missing_[d.after];
      if (from == to) own_[d.before].push_back(d.after);
      if (from != to) messages_[{d.before, to}].push_back(d.after);
    }
    next_.resize(dag.rank_order.size());
    is_running_.resize(dag.rank_order.size());
  }

  /// `link_s(from, to)`: of two ranks.
  template <class LinkSeconds>
  double makespan_s(LinkSeconds link_s) {
    double now = 0;
    std::size_t ended = 0;
    for (int rank = 0; rank < dag_.num_ranks(); ++rank) start_next(rank, now);
    while (!events_.empty()) {
      const auto [time, is_message, computation, to] = events_.top();
      events_.pop();
      now = time;
      const int rank = dag_.computations[computation].rank;
      if (is_message) {
        for (const int after : messages_.at({computation, to})) --missing_[after];
        start_next(to, now);
        std::deque<int>& queue = links_[{rank, to}];
        queue.pop_front();
        if (!queue.empty()) events_.push({now + link_s(rank, to), true, queue.front(), to});
        continue;
      }
      ++ended;
      is_running_[rank] = false;
      ++next_[rank];
      for (const int after : own_[computation]) --missing_[after];
      for (auto m = messages_.lower_bound({computation, -1}); m != messages_.end() && m->first.first == computation;
           ++m) {
        const int receiver = m->first.second;
        std::deque<int>& queue = links_[{rank, receiver}];
        queue.push_back(computation);
        if (queue.size() == 1) events_.push({now + link_s(rank, receiver), true, computation, receiver});
      }
      start_next(rank, now);
    }
    PERSEUS_CHECK(ended == durations_s_.size(), "ranks wait for each other");
    return now;
  }

 private:
  void start_next(int rank, double now) {
    const std::vector<int>& order = dag_.rank_order[rank];
    if (is_running_[rank] || next_[rank] == order.size() || missing_[order[next_[rank]]] > 0) return;
    is_running_[rank] = true;
    events_.push({now + durations_s_[order[next_[rank]]], false, order[next_[rank]], rank});
  }

  using Event = std::tuple<double, bool, int, int>;  // (time, whether a message arrives, computation, rank)
  const model::ComputationDag& dag_;
  std::vector<double> durations_s_;
  std::vector<int> missing_;                                  ///< inputs of each computation that are not there
  std::vector<std::vector<int>> own_;                         ///< computations of the same rank that need this one
  std::map<std::pair<int, int>, std::vector<int>> messages_;  ///< (sender, rank) -> its computations that need it
  std::map<std::pair<int, int>, std::deque<int>> links_;      ///< (from, to) -> senders; the first is under way
  std::vector<std::size_t> next_;
  std::vector<bool> is_running_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace perseus::testing
