#include "server/savings/under_power_limit.h"

#include <algorithm>
#include <set>
#include <vector>

#include "planning/model/reference_plans.h"
#include "planning/planner/late_clocks.h"
#include "planning/planner/realize.h"

namespace perseus::savings {
namespace {

/// Ranks by type.
std::vector<int> ranks_of_types(const model::ComputationDag& dag) {
  std::vector<int> ranks(dag.types.size());
  for (const model::Computation& computation : dag.computations) ranks[computation.type] = computation.rank;
  return ranks;
}

/// Power of one accelerator.
double power_w(const model::ComputationDag& dag, int rank, const model::Measurement& option) {
  return (option.energy / option.time).value() / dag.accelerators[rank];
}

/// The same clocks with times and energies under that limit: the device lowers the clocks itself, at once.
model::ComputationDag limited(model::ComputationDag dag, double limit_w) {
  const std::vector<int> ranks = ranks_of_types(dag);
  for (std::size_t t = 0; t < dag.types.size(); ++t) {
    std::vector<model::Measurement>& options = dag.types[t].options;
    // From the lowest clock up: each option's own measurement is still unchanged when it is read.
    std::size_t allowed = options.size() - 1;
    std::vector<std::size_t> runs_as(options.size());
    for (std::size_t o = options.size(); o-- > 0;) {
      if (power_w(dag, ranks[t], options[o]) <= limit_w) allowed = o;
      runs_as[o] = allowed;
    }
    const std::vector<model::Measurement> measured = options;
    for (std::size_t o = 0; o < options.size(); ++o) {
      options[o].time = measured[runs_as[o]].time;
      options[o].energy = measured[runs_as[o]].energy;
    }
  }
  return dag;
}

jobs::LimitedPower between(const jobs::LimitedPower& a, const jobs::LimitedPower& b, double share) {
  return {a.plan + share * (b.plan - a.plan), a.all_max + share * (b.all_max - a.all_max),
          a.all_max_time + share * (b.all_max_time - a.all_max_time)};
}

jobs::LimitedPower find(const jobs::CharacterizedPipeline& pipeline, int point, double degree, Seconds switch_latency) {
  const model::ComputationDag& dag = pipeline.dag;
  std::set<double> different;
  const std::vector<int> ranks = ranks_of_types(dag);
  for (std::size_t t = 0; t < dag.types.size(); ++t) {
    for (const model::Measurement& option : dag.types[t].options) {
      if (option.time > Seconds(0)) different.insert(power_w(dag, ranks[t], option));
    }
  }
  const std::vector<double> limits(different.begin(), different.end());  // increasing
  const model::Plan &plan = pipeline.frontier.points[point].plan, all_max = model::all_maximum_clock(dag);
  // Assumption: its power is unchanged, and its time longer.
  const jobs::LimitedPower unlimited{pipeline.frontier.points[point].effective_energy,
                                     pipeline.all_max_effective_energy, degree * pipeline.all_max_time};
  if (limits.empty()) return unlimited;
  // Times under a limit are those of the means.
  const model::FrontierPoint& of_point = pipeline.frontier.points[point];
  const Seconds wanted = degree * (of_point.time - of_point.noise.lateness);
  const auto planned_at = [&](const model::ComputationDag& of) {
    return planner::LateClocks(of, switch_latency).realize(plan);
  };
  const auto time_at = [&](double limit_w) { return planned_at(limited(dag, limit_w)).time; };
  const auto at = [&](double limit_w) {
    const model::ComputationDag of = limited(dag, limit_w);
    const planner::Realizer::Outcome highest = planner::Realizer(of).realize(all_max);
    return jobs::LimitedPower{planned_at(of).effective_energy, highest.effective_energy, highest.time};
  };
  // Time decreases as the limit rises.
  const auto above = std::ranges::partition_point(limits, [&](double limit_w) { return time_at(limit_w) > wanted; });
  if (above == limits.begin()) {
    const jobs::LimitedPower lowest = at(limits.front());
    return {lowest.plan, lowest.all_max, unlimited.all_max_time};
  }
  if (above == limits.end()) return at(limits.back());
  const Seconds slower = time_at(*(above - 1)), faster = time_at(*above);
  return between(at(*above), at(*(above - 1)), (wanted - faster) / (slower - faster));
}

}  // namespace

jobs::LimitedPower under_power_limit(const jobs::CharacterizedPipeline& pipeline, int point, double degree,
                                     Seconds switch_latency) {
  const auto [known, is_new] = pipeline.limited.try_emplace({point, degree});
  if (is_new) known->second = find(pipeline, point, degree, switch_latency);
  return known->second;
}

}  // namespace perseus::savings
