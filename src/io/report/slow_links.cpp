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
  std::vector<Seconds> latencies;
  for (const model::Dependency& d : dag.dependencies) {
    if (const auto [from, to] = ranks_of(d); from != to) latencies.push_back(d.latency);
  }
  if (latencies.empty()) return {};
  const auto middle = latencies.begin() + static_cast<std::ptrdiff_t>((latencies.size() - 1) / 2);
  std::ranges::nth_element(latencies, middle);
  const Seconds threshold = slow * *middle;
  std::map<std::pair<int, int>, SlowLink> links;
  for (const model::Dependency& d : dag.dependencies) {
    const auto [from, to] = ranks_of(d);
    if (from == to || d.latency <= threshold) continue;
    SlowLink& link = links.try_emplace({from, to}, SlowLink{from, to, {}}).first->second;
    link.latency = std::max(link.latency, d.latency);
    link.transfers.push_back(d);
  }
  std::vector<SlowLink> found;
  for (auto& [ranks, link] : links) found.push_back(std::move(link));
  return found;
}

}  // namespace perseus::report
