#include "server/under_power_limit.h"

#include <algorithm>
#include <set>
#include <vector>

#include "model/reference_plans.h"
#include "planner/realise.h"

namespace perseus::server {
namespace {

/// Power of one accelerator.
double power_w(const ComputationDag& dag, int rank, const Measurement& option) {
  return (option.energy / option.time).value() / dag.accelerators[rank];
}

Plan limited(const ComputationDag& dag, Plan plan, double limit_w) {
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Computation& computation = dag.computations[i];
    const std::vector<Measurement>& options = dag.types[computation.type].options;
    std::size_t option = plan[i];
    while (option + 1 < options.size() && power_w(dag, computation.rank, options[option]) > limit_w) ++option;
    plan[i] = static_cast<std::uint16_t>(option);
  }
  return plan;
}

LimitedPower between(const LimitedPower& a, const LimitedPower& b, double share) {
  return {a.plan + share * (b.plan - a.plan), a.all_max + share * (b.all_max - a.all_max),
          a.all_max_time + share * (b.all_max_time - a.all_max_time)};
}

LimitedPower find(const CharacterisedPipeline& pipeline, int point, double degree) {
  const ComputationDag& dag = pipeline.dag;
  std::set<double> different;
  for (const Computation& computation : dag.computations) {
    for (const Measurement& option : dag.types[computation.type].options) {
      if (option.time > Seconds(0)) different.insert(power_w(dag, computation.rank, option));
    }
  }
  const std::vector<double> limits(different.begin(), different.end());  // rising
  const Plan &plan = pipeline.frontier.points[point].plan, all_max = all_maximum_clock(dag);
  // As far as is known it is as hungry as ever, and as much slower.
  const LimitedPower unlimited{pipeline.frontier.points[point].effective_energy, pipeline.all_max_effective_energy,
                               degree * pipeline.all_max_time};
  if (limits.empty()) return unlimited;
  Realiser realiser(dag);
  const Seconds wanted = degree * realiser.realise(plan).time;
  const auto time_at = [&](double limit_w) { return realiser.realise(limited(dag, plan, limit_w)).time; };
  const auto at = [&](double limit_w) {
    const Joules own = realiser.realise(limited(dag, plan, limit_w)).effective_energy;
    const Realiser::Outcome highest = realiser.realise(limited(dag, all_max, limit_w));
    return LimitedPower{own, highest.effective_energy, highest.time};
  };
  // The lower the limit, the slower.
  const auto above = std::ranges::partition_point(limits, [&](double limit_w) { return time_at(limit_w) > wanted; });
  if (above == limits.begin()) {
    const LimitedPower lowest = at(limits.front());
    return {lowest.plan, lowest.all_max, unlimited.all_max_time};
  }
  if (above == limits.end()) return at(limits.back());
  const Seconds slower = time_at(*(above - 1)), faster = time_at(*above);
  return between(at(*above), at(*(above - 1)), (wanted - faster) / (slower - faster));
}

}  // namespace

LimitedPower under_power_limit(const CharacterisedPipeline& pipeline, int point, double degree) {
  const auto [known, is_new] = pipeline.limited.try_emplace({point, degree});
  if (is_new) known->second = find(pipeline, point, degree);
  return known->second;
}

}  // namespace perseus::server
