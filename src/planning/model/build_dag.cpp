#include "planning/model/build_dag.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "planning/model/computation_dag.h"
#include "planning/model/derived_instructions.h"
#include "planning/model/queued_transfers.h"
#include "planning/model/topological_order.h"

namespace perseus::model {
namespace {

using enum Instruction;

Error invalid(std::string message) { return {ErrorCode::invalid_input, std::move(message)}; }

constexpr std::size_t index(Instruction i) { return static_cast<std::size_t>(i); }

/// options[stage][instruction]: the measurements, empty where the profile has none.
using Options = std::vector<std::array<std::vector<Measurement>, kNumInstructions>>;

Options options_of(const Profile& profile) {
  Options options(profile.num_stages());
  for (const ProfileEntry& entry : profile.entries) {
    if (const auto instruction = instruction_named(entry.instruction)) {
      options[entry.stage][index(*instruction)] = entry.measurements;
    }
  }
  return options;
}

/// One computation of the DAG in construction, in the schedule's own order.
struct Node {
  Action action;
  int rank = 0;
  int position = 0;  ///< index in its rank's order
};

/// Index of each action in the schedule; -1 where the schedule lacks it.
class Whereabouts {
 public:
  explicit Whereabouts(const Schedule& schedule)
      : num_microbatches_(schedule.num_microbatches),
        size_(static_cast<std::size_t>(schedule.num_stages) * schedule.num_microbatches) {}

  void put(const Action& action, int node) {
    auto& table = tables_[index(action.instruction)];
    if (table.empty()) table.assign(size_, -1);
    table[at(action.stage, action.microbatch)] = node;
  }
  [[nodiscard]] int node(Instruction instruction, int stage, int microbatch) const {
    const auto& table = tables_[index(instruction)];
    return table.empty() ? -1 : table[at(stage, microbatch)];
  }
  [[nodiscard]] int node(const Action& action) const {
    return action.microbatch < 0 ? -1 : node(action.instruction, action.stage, action.microbatch);
  }

 private:
  [[nodiscard]] std::size_t at(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * num_microbatches_ + microbatch;
  }
  int num_microbatches_;
  std::size_t size_;
  std::array<std::vector<int>, kNumInstructions> tables_;
};

/// The schedule's actions, rank by rank, with the constant-time actions added or removed.
std::vector<Node> expand(const Schedule& schedule, const Options& options) {
  const auto measured = [&](int stage, Instruction i) { return !options[stage][index(i)].empty(); };
  std::vector<std::array<char, kNumInstructions>> scheduled(schedule.num_stages);
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) scheduled[action.stage][index(action.instruction)] = 1;
  }
  std::vector<Node> nodes;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    int position = 0;
    const auto add = [&](const Action& action) { nodes.push_back({action, rank, position++}); };
    const auto missing = [&](int stage, Instruction i) {
      return measured(stage, i) && scheduled[stage][index(i)] == 0;
    };
    std::vector<int> stages_here;  // in the order of their first forward
    for (const Action& action : schedule.ranks[rank]) {
      if (is_constant_time(action.instruction) && !measured(action.stage, action.instruction)) continue;
      if (action.instruction == forward) {
        if (action.microbatch == 0) stages_here.push_back(action.stage);
        if (missing(action.stage, load)) add({load, action.stage, action.microbatch});
      }
      add(action);
    }
    for (const Instruction last : {all_reduce, optimizer_step}) {
      for (const int stage : stages_here) {
        if (missing(stage, last)) add({last, stage, -1});
      }
    }
  }
  return nodes;
}

/// The dependencies of each computation besides those along its rank.
class Precedence {
 public:
  Precedence(const std::vector<Node>& nodes, const Schedule& schedule) : nodes_(nodes), where_(schedule) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].action.microbatch >= 0) where_.put(nodes[i].action, static_cast<int>(i));
    }
    last_stage_ = schedule.num_stages - 1;
    for (const auto& [before, after] : schedule.early_receives) {
      const int from = where_.node(before), to = where_.node(after);
      if (from >= 0 && to >= 0) early_.emplace(to, from);
    }
  }

  template <class Visit>
  void for_each(int node, Visit visit) const {
    if (early_.empty()) return for_each_of_its_own(node, visit);
    std::vector<int> visited;
    for_each_of_its_own(node, [&](int before) {
      visited.push_back(before);
      visit(before);
    });
    for (auto [early, end] = early_.equal_range(node); early != end; ++early) {
      if (std::ranges::find(visited, early->second) == visited.end()) visit(early->second);
    }
  }

 private:
  template <class Visit>
  void for_each_of_its_own(int node, Visit visit) const {
    const auto [instruction, stage, microbatch] = nodes_[node].action;
    const auto after = [&, m = microbatch](Instruction i, int from_stage) {
      if (const int before = where_.node(i, from_stage, m); before >= 0) visit(before);
    };
    switch (instruction) {
      case forward:
        if (stage > 0) after(forward, stage - 1);
        after(load, stage);
        break;
      case recompute:
        after(forward, stage);
        break;
      case pure_backward:
        after(recompute, stage);
        [[fallthrough]];
      case backward:
      case input_gradient:
        if (stage < last_stage_) {
          for (const Instruction i : {backward, input_gradient, pure_backward}) after(i, stage + 1);
        }
        after(forward, stage);
        break;
      case weight_gradient:
        after(input_gradient, stage);
        break;
      case load:
      case all_reduce:
      case optimizer_step:
        break;
    }
  }

  const std::vector<Node>& nodes_;
  Whereabouts where_;
  std::multimap<int, int> early_;  ///< node -> a predecessor that it may not need
  int last_stage_ = 0;
};

std::string deadlock_message(const std::vector<Node>& nodes, const std::vector<int>& cycle) {
  constexpr std::size_t shown = 12;
  std::string text = "schedule: deadlock: ";
  for (std::size_t i = 0; i < cycle.size() && i < shown; ++i) {
    const Node& node = nodes[cycle[i]];
    text += fmt::format("{} (rank {}, action {}) before ", text_of(node.action), node.rank, node.position);
  }
  if (cycle.size() > shown) text += fmt::format("... {} more before ", cycle.size() - shown);
  return text + "the first again";
}

/// Derives measurements that the schedule needs and the profile lacks, where possible.
Status complete(Options& options, const Profile& profile, const Schedule& schedule) {
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      auto& stage = options[action.stage];
      if (is_constant_time(action.instruction) || !stage[index(action.instruction)].empty()) continue;
      const bool recomputes = action.instruction == recompute || action.instruction == pure_backward;
      if (recomputes && stage[index(recompute)].empty() && stage[index(pure_backward)].empty()) {
        auto split = split_recompute(profile, action.stage);
        if (!split) return split.error();
        stage[index(recompute)] = std::move(split->recompute.measurements);
        stage[index(pure_backward)] = std::move(split->pure_backward.measurements);
        continue;
      }
      std::string message = fmt::format("the schedule {} needs {}, which the profile has no measurements of",
                                        schedule.name, text_of({action.instruction, action.stage, -1}));
      if (action.instruction == input_gradient || action.instruction == weight_gradient) {
        message += "; measure it, or give --split-backward FRACTION to split backward";
      }
      return invalid(std::move(message));
    }
  }
  return Ok{};
}

Result<std::vector<int>> accelerators_of(const Profile& profile, const Schedule& schedule) {
  std::vector<int> accelerators(schedule.num_ranks());
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    int first_stage = -1;
    for (const Action& action : schedule.ranks[rank]) {
      if (first_stage == -1) first_stage = action.stage;
      const int expected = profile.accelerators[first_stage];
      if (const int found = profile.accelerators[action.stage]; found != expected) {
        return invalid(fmt::format("rank {} holds stage {} with {} accelerators and stage {} with {}; must be equal",
                                   rank, first_stage, expected, action.stage, found));
      }
      accelerators[rank] = expected;
    }
  }
  return accelerators;
}

Status check_costs(const PipelineCosts& costs, int num_ranks) {
  const double power = costs.blocking_power.value();
  if (!std::isfinite(power) || power < 0) {
    return Error{ErrorCode::usage, fmt::format("blocking_power_w {}; must be finite and >= 0", power)};
  }
  return costs.transfer_latency.check(num_ranks);
}

using Edges = std::vector<std::pair<int, int>>;  // (node before, node after)

/// Along each rank, and those of the instructions that their rank's order does not imply.
Edges edges_of(const std::vector<Node>& nodes, const Schedule& schedule) {
  const Precedence precedence(nodes, schedule);
  const auto implied = [&](int before, int after) {
    return nodes[before].rank == nodes[after].rank && nodes[before].position < nodes[after].position;
  };
  Edges edges;
  edges.reserve(2 * nodes.size());
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    if (nodes[i].position > 0) edges.emplace_back(i - 1, i);
    precedence.for_each(i, [&](int before) {
      if (!implied(before, i)) edges.emplace_back(before, i);
    });
  }
  return edges;
}

/// Adds the types that occur and the computations; node i becomes computation number[i].
void add_computations(ComputationDag& dag, const std::vector<Node>& nodes, const std::vector<int>& number,
                      Options& options) {
  std::vector<std::array<int, kNumInstructions>> type_of(options.size());
  for (const Node& node : nodes) type_of[node.action.stage][index(node.action.instruction)] = 1;
  for (int stage = 0; stage < static_cast<int>(options.size()); ++stage) {
    for (int i = 0; i < kNumInstructions; ++i) {
      if (type_of[stage][i] == 0) continue;
      type_of[stage][i] = static_cast<int>(dag.types.size());
      dag.types.push_back({stage, std::string(name_of(static_cast<Instruction>(i))), std::move(options[stage][i])});
    }
  }
  dag.computations.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    dag.computations[number[i]] = {type_of[node.action.stage][index(node.action.instruction)], node.rank,
                                   node.action.microbatch};
    dag.rank_order[node.rank].push_back(number[i]);
  }
}

Status add_dependencies(ComputationDag& dag, const Edges& edges, const std::vector<int>& number,
                        const PipelineCosts& costs) {
  dag.dependencies.reserve(edges.size());
  for (const auto& [before, after] : edges) dag.dependencies.push_back({number[before], number[after], {}});
  const auto latencies = dependency_latencies(dag, {costs.transfer_latency, costs.blocking_transfers});
  if (!latencies) return latencies.error();
  for (std::size_t d = 0; d < latencies->size(); ++d) dag.dependencies[d].latency = (*latencies)[d];
  return Ok{};
}

}  // namespace

Result<std::vector<Seconds>> dependency_latencies(const ComputationDag& dag, const OtherLinks& links) {
  const auto rank_of = [&](int computation) { return dag.computations[computation].rank; };
  // The longest transfer that a computation sends: its rank waits for it if transfers block.
  std::vector<Seconds> sends(dag.computations.size());
  std::vector<Seconds> latencies(dag.dependencies.size());
  for (std::size_t d = 0; d < latencies.size(); ++d) {
    const auto [before, after, given] = dag.dependencies[d];
    if (rank_of(before) == rank_of(after)) continue;
    const auto latency = links.transfer_latency.between(rank_of(before), rank_of(after), dag.num_ranks());
    if (!latency) return latency.error();
    latencies[d] = *latency;
    sends[before] = std::max(sends[before], *latency);
  }
  for (std::size_t d = 0; links.blocking_transfers && d < latencies.size(); ++d) {
    const int before = dag.dependencies[d].before;
    if (rank_of(before) == rank_of(dag.dependencies[d].after)) latencies[d] = sends[before];
  }
  return latencies;
}

Result<ComputationDag> build_dag(const Profile& profile, const Schedule& schedule, const PipelineCosts& costs) {
  if (Status status = check_costs(costs, schedule.num_ranks()); !status) return status.error();
  if (Status status = profile.validate(); !status) return status.error();
  if (profile.num_stages() != schedule.num_stages) {
    return invalid(fmt::format("the profile has {} stages, the schedule {} has {} ({} ranks); must be equal",
                               profile.num_stages(), schedule.name, schedule.num_stages, schedule.num_ranks()));
  }
  if (Status status = schedule.validate(); !status) return status.error();
  Options options = options_of(profile);
  if (Status status = complete(options, profile, schedule); !status) return status.error();
  auto accelerators = accelerators_of(profile, schedule);
  if (!accelerators) return accelerators.error();

  const std::vector<Node> nodes = expand(schedule, options);
  const Edges edges = edges_of(nodes, schedule);
  const TopologicalOrder sorted = topological_order(static_cast<int>(nodes.size()), edges);
  if (!sorted.cycle.empty()) return invalid(deadlock_message(nodes, sorted.cycle));
  std::vector<int> number(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) number[sorted.order[i]] = static_cast<int>(i);

  ComputationDag dag;
  dag.blocking_power = costs.blocking_power;
  dag.accelerators = std::move(*accelerators);
  dag.rank_order.resize(schedule.num_ranks());
  add_computations(dag, nodes, number, options);
  if (Status status = add_dependencies(dag, edges, number, costs); !status) return status.error();
  if (costs.serial_transfers && !costs.blocking_transfers) {
    if (Status status = add_queued_transfers(dag); !status) return status.error();
  }
  return dag;
}

}  // namespace perseus::model
