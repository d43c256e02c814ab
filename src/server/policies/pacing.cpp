#include "server/policies/pacing.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "planning/model/default_plan.h"
#include "planning/site/power_curve.h"
#include "server/policies/deployment.h"

namespace perseus::policies {
namespace {

/// Computations of the job that are alike.
struct Alike {
  const std::vector<model::Measurement>* options;
  int planned;     ///< option of the plan
  Watts blocking;  ///< of the rank's accelerators
  double count;
};

void add(std::vector<Alike>& all, const jobs::CharacterizedPipeline& pipeline, int point, double pipelines) {
  const model::ComputationDag& dag = pipeline.dag;
  std::map<std::tuple<int, int, int>, int> counts;  // by type, option and rank
  for (int c = 0; c < static_cast<int>(dag.computations.size()); ++c) {
    const model::Computation& one = dag.computations[c];
    ++counts[{one.type, pipeline.frontier.points[point].plan[c], one.rank}];
  }
  for (const auto& [key, count] : counts) {
    const auto [type, option, rank] = key;
    all.push_back({&dag.types[type].options, option, dag.blocking_power * dag.accelerators[rank], pipelines * count});
  }
}

/// What an iteration at that ceiling takes more than the plan, over the computations for which it takes more.
Joules surplus_at(int clock_mhz, const std::vector<Alike>& all) {
  Joules surplus;
  for (const Alike& one : all) {
    const auto effective = [&](const model::Measurement& o) { return o.energy - one.blocking * o.time; };
    const Joules there = effective(at_or_below(*one.options, clock_mhz));
    surplus += one.count * std::max(Joules(0), there - effective((*one.options)[one.planned]));
  }
  return surplus;
}

/// Clocks at which a computation was measured, lowest first.
std::set<int> measured_clocks(const std::vector<Alike>& all) {
  std::set<int> clocks;
  for (const Alike& one : all) {
    for (const model::Measurement& option : *one.options) clocks.insert(option.clock.value());
  }
  clocks.erase(0);
  return clocks;
}

/// The lowest clock at or below which every computation was measured.
int lowest_common_clock(const std::vector<Alike>& all) {
  int lowest_mhz = 0;
  for (const Alike& one : all) lowest_mhz = std::max(lowest_mhz, one.options->back().clock.value());
  return lowest_mhz;
}

}  // namespace

PacedRuns paced_runs(const std::vector<PolicyScope>& groups, const PowerAtTime& slowest, double least_rate) {
  std::vector<Alike> all;
  Seconds full_speed;
  PacedRuns runs;
  for (const PolicyScope& group : groups) {
    const model::Frontier& frontier = group.pipeline->frontier;
    runs.waiting += group.scale * (group.count + group.stragglers) * group.pipeline->dag.total_blocking_power();
    full_speed = std::max(full_speed, frontier.points.back().time);
    const int straggling = straggling_point(*group.pipeline, slowest.straggler_stretch);
    if (group.count > 0) {
      add(all, *group.pipeline, model::slowest_within(frontier, slowest.time), group.scale * group.count);
    }
    if (group.stragglers > 0) add(all, *group.pipeline, straggling, group.scale * group.stragglers);
  }
  Joules least;
  const int lowest_mhz = lowest_common_clock(all);
  for (const int clock_mhz : measured_clocks(all)) {
    const Joules surplus = surplus_at(clock_mhz, all);
    runs.surplus.push_back({clock_mhz, surplus});
    if (clock_mhz < lowest_mhz) continue;
    if (runs.ceiling_mhz == 0 || surplus < least) runs.ceiling_mhz = clock_mhz, least = surplus;
  }
  if (runs.ceiling_mhz == 0) return runs;
  const double lowest = std::max({least_rate, site::kPaceStep, full_speed / std::max(kLongestWait_s, slowest.time)});
  const std::vector<double> rates = site::paced_rates(full_speed / slowest.time, lowest);
  for (auto rate = rates.rbegin(); rate != rates.rend() && *rate >= lowest; ++rate) {
    const Seconds time = full_speed / *rate;
    // An iteration at the ceiling may be longer than the period: that draws more where computing draws less than
    // waiting.
    runs.powers.push_back({time, std::max(runs.waiting, power_with_waits(groups, slowest, time) + least / time),
                           slowest.straggler_stretch});
  }
  return runs;
}

Seconds PacedRuns::period_at(const PowerAtTime& run, int at_mhz) const {
  Joules more;  // than at the ceiling of `run`
  for (const AtCeiling& at : surplus) {
    if (at.clock_mhz == at_mhz) more += at.surplus;
    if (at.clock_mhz == ceiling_mhz) more -= at.surplus;
  }
  if (at_mhz == ceiling_mhz || more <= Joules(0)) return run.time;
  const Watts computing = run.power - waiting;
  const Seconds longest = powers.back().time;
  return computing > Watts(0) ? std::min(run.time + more / computing, longest) : longest;
}

}  // namespace perseus::policies
