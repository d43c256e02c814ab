#include "server/profiling/choose_clocks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

namespace perseus::profiling {
namespace {

// Share of computations, one in so many, at a clock near the plan's that was measured least; what is near, as a share
// of the highest clock.
constexpr int kOneInSoMany = 4;
constexpr double kNearShare = 0.03;

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

ClockChoice clocks_of_plans(const Layout& layout, const Samples& samples, const PlanningProblem& problem,
                            const std::vector<model::Plan>& plans, std::mt19937_64& engine) {
  const model::ComputationDag& dag = problem.reaching();
  std::map<std::pair<model::Instruction, Megahertz>, int> counts;  // of samples, of all stages
  for (int t = 0; t < layout.num_types(); ++t) {
    const ProfiledType& type = layout.types[t];
    for (std::size_t c = 0; c < type.clocks.size(); ++c) {
      counts[{type.instruction, type.clocks[c]}] += samples.cells(t)[c].log_time.count;
    }
  }
  const auto least_measured_near = [&](int t, int clock) {
    const ProfiledType& type = layout.types[t];
    const int lowest = problem.ranges()[t].reach;
    int least = clock;
    for (int c = problem.ranges()[t].first; c <= lowest; ++c) {
      const double apart = std::abs(type.clocks[c].value() - type.clocks[clock].value());
      const bool near = std::abs(c - clock) <= 1 || apart <= kNearShare * type.clocks.front().value();
      if (near && counts[{type.instruction, type.clocks[c]}] < counts[{type.instruction, type.clocks[least]}])
        least = c;
    }
    return least;
  };
  ClockChoice choice(layout.types.size());
  for (int t = 0; t < layout.num_types(); ++t) {
    if (!layout.types[t].has_clock()) choice[t].assign(layout.types[t].occurrences, 0);
  }
  for (const std::vector<int>& computations : dag.rank_order) {
    for (const int c : computations) {
      const int t = problem.profiled_type(dag.computations[c].type);
      const model::Plan& plan = plans[engine() % plans.size()];
      if (!layout.types[t].has_clock()) continue;
      int clock = problem.ranges()[t].first + plan[c];
      if (engine() % kOneInSoMany == 0) clock = least_measured_near(t, clock);
      ++counts[{layout.types[t].instruction, layout.types[t].clocks[clock]}];
      choice[t].push_back(clock);
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
