#include "io/report/slow_links.h"

#include <algorithm>
#include <map>
#include <utility>

namespace perseus::report {

std::vector<SlowLink> slow_links(const model::ComputationDag& dag) {
  constexpr double slow = 3;
  const auto ranks_of = [&](const model::Dependency& d) {
    return std::pair(dag.computations[d.before].rank, dag.computations[d.after].rank);
  };
  // Of several messages of a rank to a computation, those with a longer latency stand for transfers in a queue.
  std::map<std::pair<int, int>, Seconds> least;  // (sending rank, computation)
  for (const model::Dependency& d : dag.dependencies) {
    const auto [known, is_new] = least.try_emplace({ranks_of(d).first, d.after}, d.latency);
    if (!is_new) known->second = std::min(known->second, d.latency);
  }
  const auto is_transfer = [&](const model::Dependency& d) {
    const auto [from, to] = ranks_of(d);
    return from != to && d.latency == least.at({from, d.after});
  };
  std::vector<Seconds> latencies;
  for (const model::Dependency& d : dag.dependencies) {
    if (is_transfer(d)) latencies.push_back(d.latency);
  }
  if (latencies.empty()) return {};
  const auto middle = latencies.begin() + static_cast<std::ptrdiff_t>((latencies.size() - 1) / 2);
  std::ranges::nth_element(latencies, middle);
  const Seconds threshold = slow * *middle;
  std::map<std::pair<int, int>, SlowLink> links;
  for (const model::Dependency& d : dag.dependencies) {
    const auto [from, to] = ranks_of(d);
    if (!is_transfer(d) || d.latency <= threshold) continue;
    SlowLink& link = links.try_emplace({from, to}, SlowLink{from, to, {}}).first->second;
    link.latency = std::max(link.latency, d.latency);
    link.transfers.push_back(d);
  }
  std::vector<SlowLink> found;
  for (auto& [ranks, link] : links) found.push_back(std::move(link));
  return found;
}

}  // namespace perseus::report
