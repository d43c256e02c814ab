#include "baselines/zeus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace perseus {
namespace {

/// The highest measured clock that is not above the limit, else the lowest.
int option_under(const ComputationType& type, Megahertz limit) {
  const auto found = std::ranges::find_if(type.options, [&](const Measurement& m) { return m.clock <= limit; });
  return static_cast<int>((found == type.options.end() ? found - 1 : found) - type.options.begin());
}

/// limit_of(type) for every computation.
Plan plan_under(const ComputationDag& dag, const std::function<Megahertz(const ComputationType&)>& limit_of) {
  std::vector<int> option;
  for (const ComputationType& type : dag.types) option.push_back(option_under(type, limit_of(type)));
  Plan plan(dag.computations.size());
  for (std::size_t i = 0; i < plan.size(); ++i) {
    plan[i] = static_cast<Plan::value_type>(option[dag.computations[i].type]);
  }
  return plan;
}

using Forwards = std::map<int, const std::vector<Measurement>*>;  // by stage

Result<Forwards> forwards_of(const ComputationDag& dag) {
  Forwards forwards;
  for (const ComputationType& type : dag.types) {
    const std::vector<Measurement>*& forward = forwards[type.stage];
    if (type.instruction == "forward") forward = &type.options;
  }
  for (const auto& [stage, forward] : forwards) {
    if (stage >= 0 && forward != nullptr) continue;
    return Error{ErrorCode::usage,
                 stage < 0 ? "ZeusPerStage: the DAG has no stages; it is defined for pipelines of stages only"
                           : fmt::format("ZeusPerStage: stage {} has no forward, which is what it balances", stage)};
  }
  return forwards;
}

}  // namespace

std::vector<Plan> zeus_global_plans(const ComputationDag& dag) {
  std::set<Megahertz, std::greater<>> clocks;
  for (const ComputationType& type : dag.types) {
    for (const Measurement& option : type.options) clocks.insert(option.clock);
  }
  if (clocks.size() > 1) clocks.erase(Megahertz(0));  // of computations without a clock
  std::vector<Plan> plans;
  for (const Megahertz clock : clocks) {
    plans.push_back(plan_under(dag, [&](const ComputationType&) { return clock; }));
  }
  return plans;
}

Result<std::vector<Plan>> zeus_per_stage_plans(const ComputationDag& dag) {
  const Result<Forwards> forwards = forwards_of(dag);
  if (!forwards) return forwards.error();
  const auto heaviest =
      std::ranges::max_element(*forwards, {}, [](const auto& entry) { return entry.second->front().time; });
  std::vector<Plan> plans;
  for (const Measurement& target : *heaviest->second) {
    std::map<int, Megahertz> balanced;
    for (const auto& [stage, forward] : *forwards) {
      const auto distance = [&](const Measurement& m) { return std::abs((m.time - target.time).value()); };
      balanced[stage] =
          stage == heaviest->first ? target.clock : std::ranges::min_element(*forward, {}, distance)->clock;
    }
    plans.push_back(plan_under(dag, [&](const ComputationType& type) { return balanced[type.stage]; }));
  }
  return plans;
}

}  // namespace perseus
