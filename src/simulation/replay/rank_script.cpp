#include "simulation/replay/rank_script.h"

#include <map>
#include <set>

namespace perseus::replay {
namespace {

/// Stage -> its index among those of the rank, in ascending order.
std::map<int, int> chunks_of(const model::ComputationDag& dag, int rank) {
  std::map<int, int> chunk;
  for (const int i : dag.rank_order[rank]) chunk.emplace(dag.type_of(i).stage, 0);
  int next = 0;
  for (auto& [stage, number] : chunk) number = next++;
  return chunk;
}

}  // namespace

RankScript script_of(const model::ComputationDag& dag, int rank) {
  RankScript script;
  script.rank = rank;
  const std::map<int, int> chunk = chunks_of(dag, rank);
  std::vector<int> step_of(dag.computations.size(), -1);
  for (const int i : dag.rank_order[rank]) {
    step_of[i] = static_cast<int>(script.steps.size());
    const model::Computation& c = dag.computations[i];
    script.steps.push_back({i, c.type, c.microbatch, chunk.at(dag.type_of(i).stage), {}, {}});
  }
  std::set<int> peers;
  for (int e = 0; e < static_cast<int>(dag.dependencies.size()); ++e) {
    const model::Dependency& d = dag.dependencies[e];
    const int from = dag.computations[d.before].rank, to = dag.computations[d.after].rank;
    if (to == rank && (from != rank || d.latency > Seconds(0))) {
      script.steps[step_of[d.after]].awaits.push_back({e, from, d.before, d.latency});
    }
    if (from == rank && to != rank) script.steps[step_of[d.before]].sends.push_back({e, to});
    if (from == to) continue;
    if (to == rank) peers.insert(from);
    if (from == rank) peers.insert(to);
  }
  script.peers.assign(peers.begin(), peers.end());
  return script;
}

}  // namespace perseus::replay
