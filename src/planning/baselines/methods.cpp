#include "planning/baselines/methods.h"

#include <fmt/format.h>

#include <array>

#include "base/count_text.h"
#include "planning/baselines/envpipe.h"
#include "planning/baselines/zeus.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/realize.h"

namespace perseus::baselines {
namespace {

Result<BaselinePlans> envpipe(const model::ComputationDag& dag, StopCheck& check) {
  const Result<EnvPipeRun> run = plan_envpipe(dag, {}, check);
  if (!run) return run.error();
  return BaselinePlans{{run->plan}, text_of(*run)};
}

Result<BaselinePlans> zeus_global(const model::ComputationDag& dag, StopCheck& /*check*/) {
  std::vector<model::Plan> plans = zeus_global_plans(dag);
  std::string note = count_text(plans.size(), "clock") + " scanned";
  return BaselinePlans{std::move(plans), std::move(note)};
}

Result<BaselinePlans> zeus_per_stage(const model::ComputationDag& dag, StopCheck& /*check*/) {
  Result<std::vector<model::Plan>> plans = zeus_per_stage_plans(dag);
  if (!plans) return plans.error();
  std::string note = count_text(plans->size(), "forward time") + " scanned";
  return BaselinePlans{*std::move(plans), std::move(note)};
}

Result<BaselinePlans> all_max(const model::ComputationDag& dag, StopCheck& /*check*/) {
  return BaselinePlans{{model::all_maximum_clock(dag)}, {}};
}
Result<BaselinePlans> min_energy(const model::ComputationDag& dag, StopCheck& /*check*/) {
  return BaselinePlans{{model::minimum_energy_plan(dag)}, {}};
}

constexpr std::array kMethods{
    BaselineMethod{"envpipe", "slows down what is off an envelope of the last stage, aiming for no slowdown", envpipe},
    BaselineMethod{"zeus-global", "one clock for all stages", zeus_global},
    BaselineMethod{"zeus-per-stage", "one clock per stage that balances forward time", zeus_per_stage},
    BaselineMethod{"all-max", "everything at maximum clock", all_max},
    BaselineMethod{"min-energy", "every computation at its least energy, waiting counted", min_energy}};

}  // namespace

std::span<const BaselineMethod> baseline_methods() { return kMethods; }

model::Frontier judge(const model::ComputationDag& dag, std::vector<model::Plan> plans,
                      const model::LowerBound& bound) {
  model::Frontier frontier;
  frontier.bound = bound;
  planner::Realizer realizer(dag);
  for (model::Plan& plan : plans) {
    const auto [time, effective_energy] = realizer.realize(plan);
    const Joules waiting = dag.total_blocking_power() * time;
    frontier.points.push_back(
        {time, effective_energy + waiting, effective_energy, bound.at(time) + waiting, std::move(plan)});
  }
  planner::keep_pareto(frontier.points);
  return frontier;
}

}  // namespace perseus::baselines
