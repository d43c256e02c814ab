#include "server/profiling/plan_uncertainty.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "planning/planner/look_up.h"
#include "planning/planner/realize.h"
#include "server/profiling/few_plans.h"

namespace perseus::profiling {
namespace {

// Number of profiles drawn to judge the plan: fewer where planning takes long.
constexpr int kMostDraws = 20, kLeastDraws = 5;
constexpr int kComputationsAtMostDraws = 800;
constexpr double kShare = 0.95;  ///< of the draws that keep a bound

/// A plan on a profile: lateness against the deadline, and energy above the bound of all plans for it, in percent.
struct OnProfile {
  double late_pct, above_bound_pct;
};
OnProfile run_on(const model::ComputationDag& dag, const model::Frontier& frontier, const model::Plan& plan,
                 Seconds deadline) {
  const RunUntil run = run_until(dag, plan, deadline);
  const Joules least = frontier.bound.at(deadline) + dag.total_blocking_power() * deadline;
  return {100 * (run.until / deadline - 1), 100 * (run.energy / least - 1)};
}

}  // namespace

RunUntil run_until(const model::ComputationDag& dag, const model::Plan& plan, Seconds deadline) {
  const planner::Realizer::Outcome outcome = planner::Realizer(dag).realize(plan);
  const Seconds until = std::max(outcome.time, deadline);
  return {until, outcome.effective_energy + dag.total_blocking_power() * until};
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double index = std::ceil(share * static_cast<double>(values.size())) - 1;
  return values[static_cast<std::size_t>(std::max(0.0, index))];
}

Seconds time_at_highest(const model::ComputationDag& dag) {
  return planner::Realizer(dag).realize(model::Plan(dag.computations.size())).time;
}

JudgedPlan judge_plan(const PlanningProblem& problem, const TimeEnergyModel& model,
                      const std::vector<double>& slowdowns, std::mt19937_64& random, StopCheck& check) {
  const auto deadlines_of = [&](const model::ComputationDag& dag) {
    std::vector<Seconds> deadlines;
    for (const double slowdown : slowdowns) deadlines.push_back(time_at_highest(dag) * slowdown);
    return deadlines;
  };
  const std::vector<Seconds> planned_deadlines = deadlines_of(problem.mean());
  const model::Frontier planned = few_plans(problem.mean(), planned_deadlines, check);
  if (check.stopped()) return {};
  // What rounding costs is no loss: with the true profile, the plan would be as far above its bound.
  std::vector<double> rounding_pct;
  for (const Seconds deadline : planned_deadlines) {
    const model::Plan& plan = planner::look_up(planned, deadline).plan;
    rounding_pct.push_back(run_on(problem.mean(), planned, plan, deadline).above_bound_pct);
  }
  const int size = static_cast<int>(problem.mean().computations.size());
  const int count = std::clamp(kMostDraws * kComputationsAtMostDraws / std::max(1, size), kLeastDraws, kMostDraws);
  std::vector<std::vector<double>> losses(slowdowns.size()), late(slowdowns.size());
  std::vector<double> worst;  // by profile
  std::vector<std::vector<model::Plan>> rivals(slowdowns.size());
  for (const model::ComputationDag& possible : problem.draws(count, model, random)) {
    const std::vector<Seconds> deadlines = deadlines_of(possible);
    const model::Frontier best = few_plans(possible, deadlines, check);
    if (check.stopped()) return {};
    double& most = worst.emplace_back(0);
    for (std::size_t k = 0; k < slowdowns.size(); ++k) {
      const model::FrontierPoint& point = planner::look_up(planned, planned_deadlines[k]);
      const OnProfile here = run_on(possible, best, point.plan, deadlines[k]);
      losses[k].push_back(here.above_bound_pct - rounding_pct[k]);
      late[k].push_back(here.late_pct);
      most = std::max({most, losses[k].back(), here.late_pct});
      rivals[k].push_back(planner::look_up(best, deadlines[k]).plan);
    }
  }
  PlanUncertainty result;
  for (std::size_t k = 0; k < slowdowns.size(); ++k) {
    double sum = 0;
    for (const double loss : losses[k]) sum += loss;
    PlanUncertainty::At at{slowdowns[k], std::max(0.0, sum / count), std::max(0.0, quantile(losses[k], kShare)),
                           quantile(late[k], kShare)};
    result.text += fmt::format(
        "{}at {:g} times the iteration time of the highest clock the plan is expected to lose {:.2f} % of energy, with "
        "{:.0f} % confidence at most {:.2f} %, and "
        "to be at most {:.2f} % late",
        k == 0 ? "" : "; ", at.slowdown, at.expected_loss_pct, 100 * std::ceil(kShare * count) / (count + 1),
        at.loss_bound_pct, at.late_bound_pct);
    result.at.push_back(at);
  }
  result.worst_bound_pct = quantile(worst, kShare);
  return {std::move(result), std::move(rivals)};
}

}  // namespace perseus::profiling
