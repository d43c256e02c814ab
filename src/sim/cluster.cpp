#include "sim/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "baselines/best_of_all.h"
#include "baselines/methods.h"
#include "model/reference_plans.h"
#include "model/schedule.h"
#include "planner/exact.h"
#include "planner/perseus_method.h"
#include "planner/realise.h"
#include "verify/simulator.h"

namespace perseus {
namespace {

/// What plans take when clocks arrive late.
Frontier realised(const ComputationDag& dag, std::vector<Plan> plans, const LowerBound& bound, Seconds switch_latency) {
  if (switch_latency == Seconds(0)) return judge(dag, std::move(plans), bound);
  Frontier frontier;
  frontier.bound = bound;
  Simulator simulator(dag);
  for (Plan& plan : plans) {
    const Simulation s = simulator.run(plan, {switch_latency});
    const Joules least = bound.at(s.makespan) + dag.total_blocking_power() * s.makespan;
    frontier.points.push_back({s.makespan, s.energy, s.effective_energy, least, std::move(plan)});
  }
  keep_pareto(frontier.points);
  return frontier;
}

Result<Frontier> plan_kind(std::string_view method, const PipelineKind& kind, const Scenario& scenario,
                           const std::function<void(double)>& progress) {
  const Seconds switch_latency = scenario.delivery.switch_latency;
  if (method == "exact") {
    PlannerOptions options;
    options.switch_latency = switch_latency;
    options.progress = progress;
    if (scenario.slowdown > 0) {
      options.also = {(1 + scenario.slowdown) * simulate(kind.dag, all_maximum_clock(kind.dag)).makespan};
    }
    return plan_best_of_all(kind.dag, options);
  }
  std::vector<Plan> plans;
  if (method == "perseus") {
    const Result<PerseusRun> run = plan_perseus(kind.dag, {scenario.unit_time, progress});
    if (!run) return run.error();
    Frontier frontier = run->frontier();
    for (FrontierPoint& point : frontier.points) plans.push_back(std::move(point.plan));
  } else {
    const auto baseline = std::ranges::find(baseline_methods(), method, &BaselineMethod::name);
    if (baseline == baseline_methods().end()) {
      return Error{ErrorCode::usage,
                   fmt::format("method '{}'; allowed: {}", method, fmt::join(emulated_method_names(), ", "))};
    }
    Result<BaselinePlans> found = baseline->plans(kind.dag);
    if (!found) return Error{found.error().code, fmt::format("method {}: {}", method, found.error().message)};
    plans = std::move(found->plans);
  }
  return realised(kind.dag, std::move(plans), kind.bound, switch_latency);
}

}  // namespace

int PipelineKind::gpus() const {
  return tensor_parallel * std::accumulate(dag.accelerators.begin(), dag.accelerators.end(), 0);
}

Watts PipelineKind::waiting_power() const { return dag.blocking_power * gpus(); }

Result<PipelineKind> make_kind(const Profile& profile, const ScenarioKind& kind, const Scenario& scenario) {
  const auto named = [&](const Error& error) {
    return Error{error.code, fmt::format("{}: {}", kind.where, error.message)};
  };
  const int stages = profile.num_stages();
  if (stages % kind.chunks != 0) {
    return named({ErrorCode::invalid_input, fmt::format("chunks: {}; {} has {} stages, which ranks of that many cannot "
                                                        "share",
                                                        kind.chunks, kind.profile, stages)});
  }
  const Result<Schedule> schedule =
      make_schedule(kind.schedule, {stages / kind.chunks, kind.microbatches, kind.chunks});
  if (!schedule) return named(schedule.error());
  Result<ComputationDag> dag =
      build_dag(profile, *schedule,
                {scenario.blocking_power, scenario.timing.transfer_latency, scenario.timing.blocking_transfers});
  if (!dag) return named(dag.error());
  PipelineKind made{kind.name, *std::move(dag), {}, kind.pipelines, scenario.tensor_parallel};
  made.bound = compute_lower_bound(made.dag).bound;
  return made;
}

std::vector<std::string_view> emulated_method_names() {
  std::vector<std::string_view> names{"exact", "perseus"};
  for (const BaselineMethod& baseline : baseline_methods()) names.push_back(baseline.name);
  return names;
}

Result<MethodPlans> plan_method(std::string_view name, const std::vector<PipelineKind>& kinds, const Scenario& scenario,
                                const std::function<void(double)>& progress) {
  MethodPlans plans{std::string(name), {}, {}, {}};
  for (const PipelineKind& kind : kinds) {
    Result<Frontier> frontier = plan_kind(name, kind, scenario, progress);
    if (!frontier) return Error{frontier.error().code, fmt::format("{}: {}", kind.name, frontier.error().message)};
    const Seconds t_max = simulate(kind.dag, all_maximum_clock(kind.dag)).makespan;
    const DefaultRule rule{scenario.slowdown, name != "exact"};
    plans.default_of_kind.push_back(static_cast<std::size_t>(default_point(*frontier, t_max, rule)));
    const Seconds own = time_without_straggler(*frontier, t_max, rule);
    plans.own_of_kind.push_back(static_cast<std::size_t>(slowest_within(*frontier, own)));
    plans.of_kind.push_back(*std::move(frontier));
  }
  return plans;
}

}  // namespace perseus
