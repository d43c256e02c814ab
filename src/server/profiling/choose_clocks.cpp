#include "server/profiling/choose_clocks.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace perseus::profiling {
namespace {

void shuffle(std::vector<int>& values, std::mt19937_64& engine) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[engine() % i]);
}

}  // namespace

ClockChoice first_clocks(const Layout& layout, double lowest_clock_share, std::mt19937_64& engine) {
  ClockChoice choice;
  for (int t = 0; t < layout.num_types(); ++t) {
    const ProfiledType& type = layout.types[t];
    std::vector<int>& clocks = choice.emplace_back();
    if (!type.has_clock()) {
      clocks.assign(type.occurrences, 0);
      continue;
    }
    const int range = lowest_index(type, std::max(kFirstShare, lowest_clock_share)) + 1;
    const int distinct = std::min(range, std::max(std::min(type.occurrences, 6), type.occurrences / 2));
    // Golden ratio: the offsets of any number of stages are well separated. Both ends are always included.
    const double offset = std::fmod(type.stage * std::numbers::phi, 1.0);
    for (int k = 0; k < type.occurrences; ++k) {
      const int step = k % distinct;
      const double at = step == 0 || step == distinct - 1 ? step : step + (offset - 0.5) * 0.999;
      const int clock = distinct > 1 ? static_cast<int>(std::lround(at * (range - 1) / (distinct - 1))) : 0;
      clocks.push_back(std::clamp(clock, 0, range - 1));
    }
    shuffle(clocks, engine);
  }
  return choice;
}

ClockChoice clocks_of_plans(const Layout& layout, const PlanningProblem& problem, const std::vector<model::Plan>& plans,
                            std::mt19937_64& engine) {
  const model::ComputationDag& dag = problem.reaching();
  ClockChoice choice(layout.types.size());
  for (int t = 0; t < layout.num_types(); ++t) {
    if (!layout.types[t].has_clock()) choice[t].assign(layout.types[t].occurrences, 0);
  }
  for (const std::vector<int>& computations : dag.rank_order) {
    for (const int c : computations) {
      const int t = problem.profiled_type(dag.computations[c].type);
      const model::Plan& plan = plans[engine() % plans.size()];
      if (layout.types[t].has_clock()) choice[t].push_back(problem.ranges()[t].first + plan[c]);
    }
  }
  return choice;
}

ClockChoice share_clocks(const Layout& layout, ClockChoice choice, SharedClock shared, std::mt19937_64& engine) {
  if (shared == SharedClock::computation) return choice;
  for (int rank = 0; rank < layout.num_ranks(); ++rank) {
    std::vector<int> types, chosen;
    for (int t = 0; t < layout.num_types(); ++t) {
      if (layout.types[t].rank == rank && layout.types[t].has_clock()) types.push_back(t);
    }
    for (const int t : types) {
      if (shared == SharedClock::type) std::ranges::fill(choice[t], int{choice[t][engine() % choice[t].size()]});
      chosen.insert(chosen.end(), choice[t].begin(), choice[t].end());
    }
    if (shared == SharedClock::type || chosen.empty()) continue;
    const int clock = chosen[engine() % chosen.size()];
    for (const int t : types) {
      std::ranges::fill(choice[t], std::min(clock, static_cast<int>(layout.types[t].clocks.size()) - 1));
    }
  }
  return choice;
}

}  // namespace perseus::profiling
