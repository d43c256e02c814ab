#include "server/profiling/measured_pipelines.h"

#include <algorithm>
#include <string>

#include "server/profiling/online_profiler.h"

namespace perseus::profiling {
namespace {

/// [iteration][action]; nothing: a time is missing.
std::optional<std::vector<std::vector<RunTime>>> times_of(const RankResult& result,
                                                          const std::vector<model::Action>& actions) {
  std::vector<std::vector<RunTime>> iterations(result.iteration_time.size());
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    std::map<model::Instruction, std::size_t> seen;
    for (const model::Action& action : actions) {
      const std::string name(model::name_of(action.instruction));
      const std::size_t occurrence = seen[action.instruction]++;
      const auto begins = result.begin_s.find(name), ends = result.end_s.find(name);
      const bool known = begins != result.begin_s.end() && ends != result.end_s.end() && i < begins->second.size() &&
                         i < ends->second.size() && occurrence < begins->second[i].size() &&
                         occurrence < ends->second[i].size();
      if (known) {
        iterations[i].push_back({begins->second[i][occurrence], ends->second[i][occurrence]});
      } else if (model::is_constant_time(action.instruction)) {  // sends nothing, and need not be measured
        const double at_s = iterations[i].empty() ? 0 : iterations[i].back().end_s;
        iterations[i].push_back({at_s, at_s});
      } else {
        return std::nullopt;
      }
    }
  }
  return iterations;
}

}  // namespace

void MeasuredPipelines::add(const RankResult& result) {
  auto times = times_of(result, schedule_.ranks[result.rank]);
  if (!times) return;
  const auto place = waiting_.try_emplace({result.replica, result.window}).first;
  OfWindow& window = place->second;
  window.emplace(result.rank, *std::move(times));
  if (window.size() < schedule_.ranks.size()) return;
  std::size_t iterations = SIZE_MAX;
  for (const auto& [rank, own] : window) iterations = std::min(iterations, own.size());
  LinkTimes& links = replicas_.try_emplace(result.replica, schedule_).first->second;
  for (std::size_t i = 0; i < iterations; ++i) {
    IterationTimes iteration;
    for (auto& [rank, own] : window) iteration.push_back(std::move(own[i]));
    links.add(iteration);
  }
  // Earlier windows of this replica are over too.
  waiting_.erase(waiting_.lower_bound({result.replica, 0}), std::next(place));
}

std::optional<MeasuredLinks> MeasuredPipelines::links() const {
  std::optional<MeasuredLinks> all;
  for (const auto& [replica, own] : replicas_) {
    const auto links = own.links();
    if (!links) continue;
    if (!all) {
      all = links;
      continue;
    }
    if (links->latency.boundaries.size() != all->latency.boundaries.size()) return std::nullopt;
    for (std::size_t b = 0; b < all->latency.boundaries.size(); ++b) {
      model::BoundaryLatency& slowest = all->latency.boundaries[b];
      slowest.forward = std::max(slowest.forward, links->latency.boundaries[b].forward);
      slowest.backward = std::max(slowest.backward, links->latency.boundaries[b].backward);
    }
    all->blocking_transfers |= links->blocking_transfers;
  }
  return all;
}

}  // namespace perseus::profiling
