#include "oracles/transformations.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace perseus::testing {
namespace {

void require_valid(const model::ComputationDag& dag) {
  const Status status = dag.validate();
  PERSEUS_CHECK(status.ok(), status.ok() ? "" : status.error().message.c_str());
}

template <class T>
void shuffle(Dice& dice, std::vector<T>& items) {
  for (int i = static_cast<int>(items.size()) - 1; i > 0; --i) std::swap(items[i], items[dice.roll(0, i)]);
}

/// A random order of 0..n-1; position i is the new number of i.
std::vector<int> random_numbers(Dice& dice, int n) {
  std::vector<int> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  shuffle(dice, numbers);
  return numbers;
}

/// New numbers that keep every dependency's direction.
std::vector<int> random_topological_numbers(Dice& dice, const model::ComputationDag& dag) {
  const int n = static_cast<int>(dag.computations.size());
  std::vector<int> waits_for(n, 0);
  for (const model::Dependency& dependency : dag.dependencies) ++waits_for[dependency.after];
  std::vector<int> ready;
  for (int i = 0; i < n; ++i)
    if (waits_for[i] == 0) ready.push_back(i);
  std::vector<int> number_of(n);
  for (int number = 0; number < n; ++number) {
    std::swap(ready[dice.roll(0, static_cast<int>(ready.size()) - 1)], ready.back());
    const int i = ready.back();
    ready.pop_back();
    number_of[i] = number;
    for (const model::Dependency& dependency : dag.dependencies)
      if (dependency.before == i && --waits_for[dependency.after] == 0) ready.push_back(dependency.after);
  }
  return number_of;
}

}  // namespace

model::ComputationDag scale_energies(model::ComputationDag dag, double factor) {
  for (model::ComputationType& type : dag.types)
    for (model::Measurement& option : type.options) option.energy = option.energy * factor;
  dag.blocking_power = dag.blocking_power * factor;
  return dag;
}

model::ComputationDag scale_times(model::ComputationDag dag, double factor) {
  for (model::ComputationType& type : dag.types)
    for (model::Measurement& option : type.options) option.time = option.time * factor;
  for (model::Dependency& dependency : dag.dependencies) dependency.latency = dependency.latency * factor;
  dag.blocking_power = dag.blocking_power / factor;
  return dag;
}

model::ComputationDag replicate_accelerators(model::ComputationDag dag, int count) {
  for (model::ComputationType& type : dag.types)
    for (model::Measurement& option : type.options) option.energy = option.energy * count;
  for (int& accelerators : dag.accelerators) accelerators *= count;
  return dag;
}

model::ComputationDag renumber(Dice& dice, const model::ComputationDag& dag) {
  const std::vector<int> type_number = random_numbers(dice, static_cast<int>(dag.types.size()));
  const std::vector<int> rank_number = random_numbers(dice, dag.num_ranks());
  const std::vector<int> number = random_topological_numbers(dice, dag);
  model::ComputationDag result = dag;
  for (std::size_t t = 0; t < dag.types.size(); ++t) result.types[type_number[t]] = dag.types[t];
  for (std::size_t i = 0; i < dag.computations.size(); ++i) {
    const model::Computation& old = dag.computations[i];
    result.computations[number[i]] = {type_number[old.type], rank_number[old.rank], old.microbatch};
  }
  for (model::Dependency& dependency : result.dependencies) {
    dependency.before = number[dependency.before];
    dependency.after = number[dependency.after];
  }
  shuffle(dice, result.dependencies);
  for (int rank = 0; rank < dag.num_ranks(); ++rank) {
    result.accelerators[rank_number[rank]] = dag.accelerators[rank];
    std::vector<int>& order = result.rank_order[rank_number[rank]];
    order.clear();
    for (const int i : dag.rank_order[rank]) order.push_back(number[i]);
  }
  require_valid(result);
  return result;
}

model::ComputationDag add_dominated_options(Dice& dice, model::ComputationDag dag) {
  const Watts most_blocking_power = dag.blocking_power * *std::ranges::max_element(dag.accelerators);
  for (model::ComputationType& type : dag.types) {
    if (type.options.back().clock <= Megahertz(1)) continue;
    const model::Measurement& better = type.options[dice.roll(0, static_cast<int>(type.options.size()) - 1)];
    const Seconds longer = better.time * dice.real(0, 1);
    model::Measurement worse = better;
    worse.clock = Megahertz(type.options.back().clock.value() - 1);
    worse.time += longer;
    // Plus one joule, because a hundredth of zero energy would leave a tie that rounding decides.
    worse.energy += most_blocking_power * longer + (better.energy + Joules(1)) * dice.real(0.01, 1);
    type.options.push_back(worse);
  }
  require_valid(dag);
  return dag;
}

model::ComputationDag split_in_series(const model::ComputationDag& dag, int computation, double fraction) {
  model::ComputationDag result = dag;
  // Shifts the numbers after `computation` by one, for its second part.
  const auto renumbered = [computation](int i) { return i > computation ? i + 1 : i; };
  for (model::Dependency& dependency : result.dependencies) {
    dependency.before = dependency.before == computation ? computation + 1 : renumbered(dependency.before);
    dependency.after = renumbered(dependency.after);
  }
  for (std::vector<int>& order : result.rank_order)
    for (int& i : order) i = renumbered(i);
  const model::Computation whole = dag.computations[computation];
  std::vector<int>& order = result.rank_order[whole.rank];
  order.insert(std::ranges::find(order, computation) + 1, computation + 1);
  result.dependencies.push_back({computation, computation + 1, Seconds(0)});

  const auto part_of_type = [&](double part) {
    model::ComputationType type = dag.types[whole.type];
    for (model::Measurement& option : type.options) {
      option.time = option.time * part;
      option.energy = option.energy * part;
    }
    result.types.push_back(type);
    return static_cast<int>(result.types.size()) - 1;
  };
  const model::Computation first{part_of_type(fraction), whole.rank, whole.microbatch};
  const model::Computation second{part_of_type(1 - fraction), whole.rank, whole.microbatch};
  result.computations[computation] = first;
  result.computations.insert(result.computations.begin() + computation + 1, second);
  require_valid(result);
  return result;
}

}  // namespace perseus::testing
