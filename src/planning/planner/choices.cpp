#include "planning/planner/choices.h"

#include <algorithm>
#include <map>
#include <utility>

namespace perseus::planner {

ChoiceSet make_choices(const std::vector<model::Measurement>& options, Watts blocking_power) {
  std::vector<Choice> sorted;
  sorted.reserve(options.size());
  for (std::size_t i = 0; i < options.size(); ++i) {
    sorted.push_back(
        {options[i].time, options[i].energy - blocking_power * options[i].time, static_cast<std::uint16_t>(i)});
  }
  // Fastest first; among equally fast choices the cheapest comes first.
  std::ranges::stable_sort(sorted, [](const Choice& a, const Choice& b) {
    return std::pair(a.time, a.effective_energy) < std::pair(b.time, b.effective_energy);
  });
  ChoiceSet set;
  for (const Choice& choice : sorted) {
    if (set.pareto.empty() || choice.effective_energy < set.pareto.back().effective_energy) {
      set.pareto.push_back(choice);
    }
  }
  std::ranges::reverse(set.pareto);

  // Lower convex hull, slowest to fastest: prices must rise strictly.
  const auto price = [&](int slower, int faster) {
    const Choice &a = set.pareto[slower], &b = set.pareto[faster];
    return (b.effective_energy - a.effective_energy) / (a.time - b.time);
  };
  for (int i = 0; i < static_cast<int>(set.pareto.size()); ++i) {
    while (set.hull.size() >= 2 && price(set.hull[set.hull.size() - 2], set.hull.back()) >= price(set.hull.back(), i)) {
      set.hull.pop_back();
    }
    set.hull.push_back(i);
  }
  return set;
}

model::Plan Kinds::plan_of(const std::vector<int>& choices) const {
  model::Plan plan(choices.size());
  for (std::size_t i = 0; i < choices.size(); ++i) plan[i] = sets[of_computation[i]].pareto[choices[i]].option;
  return plan;
}

Kinds make_kinds(const model::ComputationDag& dag) {
  Kinds kinds;
  std::map<std::pair<int, double>, int> known;
  kinds.of_computation.reserve(dag.computations.size());
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    const int type = dag.computations[i].type;
    const Watts power = dag.blocking_power_of(i);
    const auto [it, is_new] = known.try_emplace({type, power.value()}, static_cast<int>(kinds.sets.size()));
    if (is_new) kinds.sets.push_back(make_choices(dag.types[type].options, power));
    kinds.of_computation.push_back(it->second);
  }
  return kinds;
}

}  // namespace perseus::planner
