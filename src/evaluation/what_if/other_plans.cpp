#include "evaluation/what_if/other_plans.h"

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

}  // namespace

std::vector<OtherPlan> other_plans(const TracedJob& job, const Slowdown& slowdown) {
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
    if (seconds && *seconds < 0.995 * *traced) all.push_back({std::move(name), *seconds});
  };
  add("equal stages", makespan_of(job.schedule(), equal));
  for (const std::string& name : model::schedule_names()) {
    const auto schedule = model::make_schedule(name, {job.ranks, job.microbatches, model::usual_chunks(name)});
    if (schedule && !recomputes(*schedule)) add("schedule " + name, makespan_of(*schedule, times));
  }
  std::ranges::stable_sort(all, {}, &OtherPlan::pipeline_s);
  all.insert(all.begin(), {"as traced", *traced});
  return all;
}

}  // namespace perseus::what_if
