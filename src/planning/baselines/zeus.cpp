#include "planning/baselines/zeus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace perseus::baselines {
namespace {

/// The highest measured clock that is not above the limit, else the lowest.
int option_under(const model::ComputationType& type, Megahertz limit) {
  const auto found = std::ranges::find_if(type.options, [&](const model::Measurement& m) { return m.clock <= limit; });
  return static_cast<int>((found == type.options.end() ? found - 1 : found) - type.options.begin());
}

/// limit_of(type) for every computation.
model::Plan plan_under(const model::ComputationDag& dag,
                       const std::function<Megahertz(const model::ComputationType&)>& limit_of) {
  std::vector<int> option;
  for (const model::ComputationType& type : dag.types) option.push_back(option_under(type, limit_of(type)));
  model::Plan plan(dag.computations.size());
  for (std::size_t i = 0; i < plan.size(); ++i) {
    plan[i] = static_cast<model::Plan::value_type>(option[dag.computations[i].type]);
  }
  return plan;
}

using Forwards = std::map<int, const std::vector<model::Measurement>*>;  // by stage

Result<Forwards> forwards_of(const model::ComputationDag& dag) {
  Forwards forwards;
  for (const model::ComputationType& type : dag.types) {
    const std::vector<model::Measurement>*& forward = forwards[type.stage];
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

std::vector<model::Plan> zeus_global_plans(const model::ComputationDag& dag) {
  std::set<Megahertz, std::greater<>> clocks;
  for (const model::ComputationType& type : dag.types) {
    for (const model::Measurement& option : type.options) clocks.insert(option.clock);
  }
  if (clocks.size() > 1) clocks.erase(Megahertz(0));  // of computations that have no clock
  std::vector<model::Plan> plans;
  for (const Megahertz clock : clocks) {
    plans.push_back(plan_under(dag, [&](const model::ComputationType&) { return clock; }));
  }
  return plans;
}

Result<std::vector<model::Plan>> zeus_per_stage_plans(const model::ComputationDag& dag) {
  const Result<Forwards> forwards = forwards_of(dag);
  if (!forwards) return forwards.error();
  const auto heaviest =
      std::ranges::max_element(*forwards, {}, [](const auto& entry) { return entry.second->front().time; });
  std::vector<model::Plan> plans;
  for (const model::Measurement& target : *heaviest->second) {
    std::map<int, Megahertz> balanced;
    for (const auto& [stage, forward] : *forwards) {
      const auto distance = [&](const model::Measurement& m) { return std::abs((m.time - target.time).value()); };
      balanced[stage] =
          stage == heaviest->first ? target.clock : std::ranges::min_element(*forward, {}, distance)->clock;
    }
    plans.push_back(plan_under(dag, [&](const model::ComputationType& type) { return balanced[type.stage]; }));
  }
  return plans;
}

}  // namespace perseus::baselines
