#include "planning/search/repartition.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "planning/model/instruction.h"
#include "planning/partitioner/least_energy.h"
#include "planning/partitioner/stage_profile.h"

namespace perseus::search {
namespace {

Error no_layers(std::string message) { return {ErrorCode::invalid_input, "--stage-layers: " + std::move(message)}; }

/// Forward and backward of each stage at the clocks measured for all of them, highest first.
Result<std::vector<std::vector<model::LayerCost>>> stage_costs(const model::Profile& profile) {
  std::vector<std::vector<model::LayerCost>> costs(profile.num_stages());
  const model::ProfileEntry* first = profile.find(0, "forward");
  if (first == nullptr) return no_layers("stage 0 has no forward");
  for (const model::Measurement& at : first->measurements) {
    std::vector<model::LayerCost> everywhere;
    for (int stage = 0; stage < profile.num_stages(); ++stage) {
      std::vector<const model::Measurement*> both;
      for (const char* name : {"forward", "backward"}) {
        const model::ProfileEntry* entry = profile.find(stage, name);
        if (entry == nullptr) return no_layers(fmt::format("stage {} has no {}", stage, name));
        const auto found = std::ranges::find(entry->measurements, at.clock, &model::Measurement::clock);
        if (found != entry->measurements.end()) both.push_back(&*found);
      }
      if (both.size() == 2) {
        everywhere.push_back({at.clock, both[0]->time, both[1]->time, both[0]->energy, both[1]->energy});
      }
    }
    if (static_cast<int>(everywhere.size()) < profile.num_stages()) continue;
    for (int stage = 0; stage < profile.num_stages(); ++stage) costs[stage].push_back(everywhere[stage]);
  }
  if (costs.front().empty()) return no_layers("no clock was measured for forward and backward of every stage");
  return costs;
}

model::LayerCost share_of(const model::LayerCost& c, double share) {
  return {c.clock, c.forward * share, c.backward * share, c.forward_energy * share, c.backward_energy * share};
}

model::LayerCost rest_of(const model::LayerCost& whole, const model::LayerCost& taken) {
  return {whole.clock, whole.forward - taken.forward, whole.backward - taken.backward,
          whole.forward_energy - taken.forward_energy, whole.backward_energy - taken.backward_energy};
}

/// The head counts as the last stage's.
std::vector<int> transformer_layers_of(const partitioner::Partition& partition, bool has_head) {
  std::vector<int> layers;
  for (int stage = 0; stage < partition.num_stages(); ++stage) layers.push_back(partition.layers_of(stage));
  if (has_head) --layers.back();
  return layers;
}

partitioner::Partition measured_partition(const std::vector<int>& layers_per_stage, bool has_head) {
  partitioner::Partition partition{{0}};
  for (const int layers : layers_per_stage) partition.boundaries.push_back(partition.boundaries.back() + layers);
  if (has_head) ++partition.boundaries.back();
  return partition;
}

bool is_positive(const model::LayerCost& c) {
  return c.forward > Seconds() && c.backward > Seconds() && c.forward_energy > Joules() && c.backward_energy > Joules();
}

/// head_wanted: whether the last stage has a head; nullopt: if its times and energies exceed those of its layers at
/// every clock.
Result<std::vector<model::Layer>> divided(const model::Profile& profile, const std::vector<int>& layers_per_stage,
                                          std::optional<bool> head_wanted) {
  const int stages = profile.num_stages();
  if (static_cast<int>(layers_per_stage.size()) != stages) {
    return no_layers(fmt::format("{} numbers; the profile has {} stages", layers_per_stage.size(), stages));
  }
  if (std::ranges::adjacent_find(profile.accelerators, std::not_equal_to()) != profile.accelerators.end()) {
    return no_layers("stages have different numbers of accelerators, so layers cannot move between them");
  }
  const auto costs = stage_costs(profile);
  if (!costs) return costs.error();
  std::vector<model::Layer> layers;
  for (int stage = 0; stage < stages; ++stage) {
    const int count = layers_per_stage[stage];
    std::vector<model::LayerCost> each, head;
    for (std::size_t c = 0; c < (*costs)[stage].size(); ++c) {
      each.push_back(share_of((*costs)[stage][c], 1.0 / count));
      if (stage == 0 || stage + 1 < stages) continue;
      const model::LayerCost before = share_of((*costs)[stage - 1][c], 1.0 / layers_per_stage[stage - 1]);
      const model::LayerCost rest = rest_of((*costs)[stage][c], share_of(before, count));
      if (!head_wanted.value_or(is_positive(rest))) continue;
      head.push_back(rest);
    }
    const bool has_head = !head.empty() && head.size() == each.size();
    if (has_head) {
      for (std::size_t c = 0; c < each.size(); ++c) {
        each[c] = share_of((*costs)[stage - 1][c], 1.0 / layers_per_stage[stage - 1]);
      }
    }
    for (int i = 0; i < count; ++i)
      layers.push_back({fmt::format("{}.{}", stage, i), model::LayerKind::transformer, each});
    if (has_head) layers.push_back({"head", model::LayerKind::head, head});
  }
  return layers;
}

/// The profile with a partition's stages: instructions other than forward and backward keep their stage.
model::Profile with_cut(model::Profile profile, const model::Profile& cut) {
  std::erase_if(profile.entries, [](const model::ProfileEntry& entry) {
    const auto instruction = model::instruction_named(entry.instruction);
    return !instruction || !model::is_constant_time(*instruction);
  });
  std::ranges::copy(cut.entries, std::back_inserter(profile.entries));
  std::ranges::stable_sort(profile.entries, {}, &model::ProfileEntry::stage);
  return profile;
}

/// The same partition of each draw.
Result<std::vector<model::Profile>> cut_draws(const std::vector<model::Profile>& draws,
                                              const std::vector<int>& layers_per_stage, bool has_head,
                                              const partitioner::Partition& partition) {
  std::vector<model::Profile> all;
  for (const model::Profile& draw : draws) {
    const auto layers = divided(draw, layers_per_stage, has_head);
    if (!layers) return layers.error();
    const auto cut = partitioner::profile_of(*layers, partition);
    if (!cut) return cut.error();
    all.push_back(with_cut(draw, *cut));
    if (Status valid = all.back().validate(); !valid) return valid.error();
  }
  return all;
}

}  // namespace

Result<std::vector<model::Layer>> layers_of(const model::Profile& profile, const std::vector<int>& layers_per_stage) {
  return divided(profile, layers_per_stage, std::nullopt);
}

Result<Repartitioned> with_best_partition(const SearchedJob& job, const ConfigurationChoice& choice,
                                          const std::vector<int>& layers_per_stage, Seconds deadline) {
  const int stages = job.profile.num_stages();
  if (choice.chunks != 1 || (job.num_ranks != 0 && job.num_ranks != stages)) {
    return Error{ErrorCode::usage,
                 fmt::format("{}+partition-best: only schedules with one stage on each rank", name_of(choice))};
  }
  if (!job.memory.empty() && !job.layer_memory) {
    return Error{ErrorCode::usage,
                 fmt::format("{}+partition-best: the memory of other partitions is not known", name_of(choice))};
  }
  PERSEUS_CHECK(!job.layer_memory || job.layer_memory->layers == layers_per_stage, "profile and memory: same layers");
  const auto layers = layers_of(job.profile, layers_per_stage);
  if (!layers) return layers.error();

  const bool has_head = layers->back().kind == model::LayerKind::head;
  SearchedJob mean = job;
  mean.draws.clear();
  const auto job_with = [&](const partitioner::Partition& partition, const model::Profile& cut) -> Result<SearchedJob> {
    SearchedJob other = mean;
    if (job.layer_memory) {
      const Status known = set_memory({transformer_layers_of(partition, has_head), job.layer_memory->of}, other);
      if (!known) return known.error();
    }
    other.profile = with_cut(std::move(other.profile), cut);
    return other;
  };
  partitioner::EnergyGoal goal;
  goal.deadline = deadline;
  goal.blocking_power = job.costs.blocking_power;
  goal.make_dag = [&](const partitioner::Partition& partition,
                      const model::Profile& cut) -> Result<model::ComputationDag> {
    const Result<SearchedJob> other = job_with(partition, cut);
    if (!other) return other.error();
    Result<Configuration> made = configure(*other, choice);
    if (!made) return made.error();
    return std::move(made->dag);
  };
  goal.starts.push_back(measured_partition(layers_per_stage, has_head));
  const auto best = partitioner::least_energy(*layers, stages, goal);
  if (!best)
    return Error{best.error().code, fmt::format("{}+partition-best: {}", name_of(choice), best.error().message)};
  const auto profile = partitioner::profile_of(*layers, best->partition);
  if (!profile) return profile.error();
  Result<SearchedJob> moved = job_with(best->partition, *profile);
  if (!moved) return moved.error();
  Repartitioned answer{*std::move(moved), best->partition, best->all_tried};
  auto draws = cut_draws(job.draws, layers_per_stage, has_head, best->partition);
  if (!draws) return draws.error();
  answer.job.draws = *std::move(draws);
  answer.job.variant += kPartitionVariant;
  answer.job.is_derived = true;
  answer.job.assumptions.push_back(
      fmt::format("partition {}{}: the layers of a measured stage are alike{}", text_of(best->partition),
                  best->all_tried ? "" : ", the best of those that were tried",
                  has_head ? "; the last stage's remainder is one more layer, the head" : ""));
  return answer;
}

}  // namespace perseus::search
