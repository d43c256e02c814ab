#include "plan/drawn_plans.h"

#include "planning/checker/plan_run.h"
#include "planning/model/reference_plans.h"

namespace perseus::cli {

DrawnPlans::DrawnPlans(const model::ComputationDag& dag, const std::vector<report::DrawnPlan>& plans,
                       Seconds switch_latency)
    : dag_(dag) {
  for (const report::DrawnPlan& plan : plans) plans_.emplace_back(plan.name, plan.plan);
  if (switch_latency == Seconds(0)) return;
  const std::size_t count = dag.computations.size();
  dag_.types.assign(count, {});
  checker::PlanRunner runner(dag);
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const checker::PlanRun run = runner.run(plans[p].plan, {switch_latency});
    for (std::size_t i = 0; i < count; ++i) {
      const model::ComputationType& type = dag.type_of(static_cast<int>(i));
      model::ComputationType& own = dag_.types[i];
      own.stage = type.stage;
      own.instruction = type.instruction;
      model::Measurement& drawn = own.options.emplace_back();
      drawn.clock = type.options[plans[p].plan[i]].clock;
      drawn.time = run.end[i] - run.start[i];
      drawn.energy = run.energy_of[i];
      dag_.computations[i].type = static_cast<int>(i);
    }
    plans_[p].second.assign(count, static_cast<std::uint16_t>(p));
  }
}

std::vector<report::DrawnPlan> DrawnPlans::plans() const {
  std::vector<report::DrawnPlan> all;
  for (const auto& [name, plan] : plans_) all.push_back({name, plan});
  return all;
}

DrawnPlans default_drawing(const model::ComputationDag& dag, const model::Frontier& frontier,
                           const model::DefaultRule& rule, Seconds switch_latency) {
  const int chosen = model::default_point(frontier, report::t_max_of(dag, frontier), rule);
  const model::Plan before = model::all_maximum_clock(dag);
  return {dag,
          {{"everything at maximum clock", before}, {"the default plan", frontier.points[chosen].plan}},
          switch_latency};
}

}  // namespace perseus::cli
