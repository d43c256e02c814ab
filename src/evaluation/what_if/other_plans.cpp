#include "evaluation/what_if/other_plans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "planning/model/build_dag.h"
#include "planning/model/derived_instructions.h"
#include "planning/model/make_schedule.h"
#include "planning/model/neighbors.h"

namespace perseus::what_if {
namespace {

using model::Instruction;

constexpr double kLeastGain = 0.005;
constexpr int kMostMoved = 32;  ///< layers

/// Seconds of a rank's forward and backward.
using RankTimes = std::vector<std::map<Instruction, double>>;

std::optional<double> makespan_of(const model::Schedule& schedule, const RankTimes& times) {
  const int chunks = schedule.num_stages / schedule.num_ranks();
  model::Profile profile;
  profile.accelerators.assign(schedule.num_stages, 1);
  std::vector<int> rank_of(schedule.num_stages);
  for (int r = 0; r < schedule.num_ranks(); ++r) {
    for (const model::Action& action : schedule.ranks[r]) rank_of[action.stage] = r;
  }
  for (int s = 0; s < schedule.num_stages; ++s) {
    for (const auto& [instruction, seconds] : times[rank_of[s]]) {
      model::Measurement m;
      m.time = Seconds(seconds / chunks);
      m.energy = Joules(1);  // unknown
      profile.entries.push_back({s, std::string(name_of(instruction)), {m}});
    }
  }
  auto dag = model::build_dag(profile, schedule, {});
  if (!dag) {
    const auto split = model::split_backward(profile, 0.5);
    if (split) dag = model::build_dag(*split, schedule, {});
  }
  if (!dag) return std::nullopt;
  std::vector<double> end;
  return model::longest_path(
      model::neighbors_before_s(*dag), [&](int i) { return dag->type_of(i).options.front().time.value(); }, end);
}

/// Whether a traced backward recomputes is unknown.
bool recomputes(const model::Schedule& schedule) {
  return schedule.ranks.front().end() !=
         std::ranges::find(schedule.ranks.front(), Instruction::recompute, &model::Action::instruction);
}

double sum_of(const std::map<Instruction, double>& times) {
  double sum = 0;
  for (const auto& [instruction, seconds] : times) sum += seconds;
  return sum;
}

/// Adds each layer that shortens the pipeline when it leaves the longest stage.
template <class Add>
void move_layers(const model::Schedule& schedule, RankTimes times, std::vector<int> layers, double shortest_s,
                 const Add& add) {
  std::map<Instruction, double> layer;
  for (std::size_t s = 0; s < times.size(); ++s) {
    for (const auto& [instruction, seconds] : times[s]) {
      const auto [least, is_new] = layer.try_emplace(instruction, seconds / layers[s]);
      if (!is_new) least->second = std::min(least->second, seconds / layers[s]);
    }
  }
  for (int moved = 0; moved < kMostMoved; ++moved) {
    const auto longest = std::ranges::max_element(times, {}, sum_of) - times.begin();
    if (layers[longest] < 2) return;
    std::optional<std::size_t> best;
    for (std::size_t to = 0; to < times.size(); ++to) {
      if (static_cast<std::ptrdiff_t>(to) == longest) continue;
      RankTimes changed = times;
      for (const auto& [instruction, seconds] : layer) {
        changed[longest][instruction] -= seconds;
        changed[to][instruction] += seconds;
      }
      const auto seconds = makespan_of(schedule, changed);
      if (seconds && *seconds < (1 - kLeastGain) * shortest_s) best = to, shortest_s = *seconds;
    }
    if (!best) return;
    --layers[longest], ++layers[*best];
    for (const auto& [instruction, seconds] : layer) {
      times[longest][instruction] -= seconds;
      times[*best][instruction] += seconds;
    }
    add(fmt::format("layers {}", fmt::join(layers, ",")), shortest_s);
  }
}

}  // namespace

std::vector<OtherPlan> other_plans(const TracedJob& job, const Slowdown& slowdown, const std::vector<int>& layers) {
  if (job.stages != job.ranks || slowdown.types.size() != 2 * static_cast<std::size_t>(job.stages)) return {};
  RankTimes times(job.ranks), equal(job.ranks);
  for (const TypeTimes& type : slowdown.types) {
    if (type.instruction > Instruction::backward) return {};
    times[type.stage][type.instruction] = std::max(type.usual_s, 1e-9);
    for (auto& rank : equal) rank[type.instruction] += std::max(type.usual_s, 1e-9) / job.ranks;
  }
  const auto traced = makespan_of(job.schedule(), times);
  if (!traced) return {};
  std::vector<OtherPlan> all;
  const auto add = [&](std::string name, std::optional<double> seconds) {
    if (seconds && *seconds < (1 - kLeastGain) * *traced) all.push_back({std::move(name), *seconds});
  };
  add("equal stages", makespan_of(job.schedule(), equal));
  if (std::ssize(layers) == job.stages) move_layers(job.schedule(), times, layers, *traced, add);
  for (const std::string& name : model::schedule_names()) {
    const auto schedule = model::make_schedule(name, {job.ranks, job.microbatches, model::usual_chunks(name)});
    if (schedule && !recomputes(*schedule)) add("schedule " + name, makespan_of(*schedule, times));
  }
  std::ranges::stable_sort(all, {}, &OtherPlan::pipeline_s);
  all.insert(all.begin(), {"schedule as traced", *traced});
  return all;
}

}  // namespace perseus::what_if
