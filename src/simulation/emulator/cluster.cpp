#include "simulation/emulator/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "planning/baselines/best_of_all.h"
#include "planning/baselines/methods.h"
#include "planning/checker/plan_run.h"
#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "planning/model/schedule.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"
#include "planning/planner/perseus_method.h"
#include "planning/planner/realize.h"

namespace perseus::emulator {
namespace {

/// The plans' times and energies when clocks arrive late.
model::Frontier realized(const model::ComputationDag& dag, std::vector<model::Plan> plans,
                         const model::LowerBound& bound, Seconds switch_latency) {
  if (switch_latency == Seconds(0)) return baselines::judge(dag, std::move(plans), bound);
  model::Frontier frontier;
  frontier.bound = bound;
  checker::PlanRunner runner(dag);
  for (model::Plan& plan : plans) {
    const checker::PlanRun s = runner.run(plan, {switch_latency});
    const Joules least = bound.at(s.makespan) + dag.total_blocking_power() * s.makespan;
    frontier.points.push_back({s.makespan, s.energy, s.effective_energy, least, std::move(plan)});
  }
  planner::keep_pareto(frontier.points);
  return frontier;
}

Result<model::Frontier> plan_kind(std::string_view method, const PipelineKind& kind, const model::Scenario& scenario,
                                  const std::function<void(double)>& progress) {
  const Seconds switch_latency = scenario.delivery.switch_latency;
  if (method == "exact") {
    planner::PlannerOptions options;
    options.switch_latency = switch_latency;
    options.progress = progress;
    if (scenario.slowdown > 0) {
      options.also = {(1 + scenario.slowdown) *
                      checker::run_plan(kind.dag, model::all_maximum_clock(kind.dag)).makespan};
    }
    return baselines::plan_best_of_all(kind.dag, options);
  }
  std::vector<model::Plan> plans;
  if (method == "perseus") {
    const Result<planner::PerseusRun> run = planner::plan_perseus(kind.dag, {scenario.unit_time, progress});
    if (!run) return run.error();
    model::Frontier frontier = run->frontier();
    for (model::FrontierPoint& point : frontier.points) plans.push_back(std::move(point.plan));
  } else {
    const auto baseline = std::ranges::find(baselines::baseline_methods(), method, &baselines::BaselineMethod::name);
    if (baseline == baselines::baseline_methods().end()) {
      return Error{ErrorCode::usage,
                   fmt::format("method '{}'; allowed: {}", method, fmt::join(emulated_method_names(), ", "))};
    }
    Result<baselines::BaselinePlans> found = baseline->plans(kind.dag);
    if (!found) return Error{found.error().code, fmt::format("method {}: {}", method, found.error().message)};
    plans = std::move(found->plans);
  }
  return realized(kind.dag, std::move(plans), kind.bound, switch_latency);
}

}  // namespace

int PipelineKind::gpus() const {
  return tensor_parallel * std::accumulate(dag.accelerators.begin(), dag.accelerators.end(), 0);
}

Watts PipelineKind::waiting_power() const { return dag.blocking_power * gpus(); }

Result<PipelineKind> make_kind(const model::Profile& profile, const model::ScenarioKind& kind,
                               const model::Scenario& scenario) {
  const auto named = [&](const Error& error) {
    return Error{error.code, fmt::format("{}: {}", kind.where, error.message)};
  };
  const int stages = profile.num_stages();
  if (stages % kind.chunks != 0) {
    return named({ErrorCode::invalid_input, fmt::format("chunks: {}; {} has {} stages, which ranks of that many cannot "
                                                        "share",
                                                        kind.chunks, kind.profile, stages)});
  }
  const Result<model::Schedule> schedule =
      model::make_schedule(kind.schedule, {stages / kind.chunks, kind.microbatches, kind.chunks});
  if (!schedule) return named(schedule.error());
  Result<model::ComputationDag> dag =
      model::build_dag(profile, *schedule,
                       {scenario.blocking_power, scenario.timing.transfer_latency, scenario.timing.blocking_transfers,
                        scenario.timing.serial_transfers});
  if (!dag) return named(dag.error());
  PipelineKind made{kind.name, *std::move(dag), {}, kind.pipelines, scenario.tensor_parallel};
  made.bound = planner::compute_lower_bound(made.dag).bound;
  return made;
}

std::vector<std::string_view> emulated_method_names() {
  std::vector<std::string_view> names{"exact", "perseus"};
  for (const baselines::BaselineMethod& baseline : baselines::baseline_methods()) names.push_back(baseline.name);
  return names;
}

Result<MethodPlans> plan_method(std::string_view name, const std::vector<PipelineKind>& kinds,
                                const model::Scenario& scenario, const std::function<void(double)>& progress) {
  MethodPlans plans{std::string(name), {}, {}, {}};
  for (const PipelineKind& kind : kinds) {
    Result<model::Frontier> frontier = plan_kind(name, kind, scenario, progress);
    if (!frontier) return Error{frontier.error().code, fmt::format("{}: {}", kind.name, frontier.error().message)};
    const Seconds t_max = checker::run_plan(kind.dag, model::all_maximum_clock(kind.dag)).makespan;
    const model::DefaultRule rule{scenario.slowdown, name != "exact"};
    plans.default_of_kind.push_back(static_cast<std::size_t>(model::default_point(*frontier, t_max, rule)));
    const Seconds own = model::time_without_straggler(*frontier, t_max, rule);
    plans.own_of_kind.push_back(static_cast<std::size_t>(model::slowest_within(*frontier, own)));
    plans.of_kind.push_back(*std::move(frontier));
  }
  return plans;
}

}  // namespace perseus::emulator
