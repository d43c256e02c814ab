#include "evaluation/reproduction/emulated_case.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "io/report/timeline.h"
#include "planning/baselines/best_of_all.h"
#include "planning/baselines/methods.h"
#include "planning/planner/look_up.h"

namespace perseus::reproduction {
namespace {

double percent_less(Joules energy, Joules than) { return 100 * (1 - energy / than); }

}  // namespace

FrontierComparison compare_frontiers(const planner::PerseusRun& run, const std::vector<PublishedPoint>& published,
                                     Seconds tau) {
  std::unordered_map<long long, Joules> ours;
  for (const planner::PerseusStep& step : run.steps())
    ours[std::llround(step.planned_time / tau)] = step.planned_energy;
  FrontierComparison comparison;
  comparison.published_points = static_cast<int>(published.size());
  double sum_pct = 0;
  for (const PublishedPoint& point : published) {
    const auto same = ours.find(std::llround(point.planned_time / tau));
    if (same == ours.end()) continue;
    const double deviation_pct = 100 * (same->second / point.energy - 1);
    ++comparison.common_points;
    sum_pct += std::abs(deviation_pct);
    if (std::abs(deviation_pct) > std::abs(comparison.largest_deviation_pct)) {
      comparison.largest_deviation_pct = deviation_pct;
    }
  }
  if (comparison.common_points > 0) comparison.mean_deviation_pct = sum_pct / comparison.common_points;
  return comparison;
}

Result<EmulatedCase> EmulatedCase::plan(const model::ComputationDag& dag, Seconds tau,
                                        const planner::PlannerOptions& planner,
                                        std::optional<report::IterationCost> envpipe) {
  EmulatedCase made;
  Result<planner::PerseusRun> run = planner::plan_perseus(dag, {tau, {}});
  if (!run) return run.error();
  made.paper_ = *std::move(run);
  made.paper_realized_ = made.paper_.frontier();
  planner::PlannerOptions options = planner;
  for (const model::FrontierPoint& point : made.paper_realized_.points) options.candidates.push_back(point.plan);
  Result<model::Frontier> ours = baselines::plan_best_of_all(dag, options);
  if (!ours) return ours.error();
  made.ours_ = *std::move(ours);
  const report::Timeline all_max = report::timeline_of(dag, model::all_maximum_clock(dag));
  made.all_max_ = {all_max.makespan, all_max.energy, all_max.effective_energy};
  made.total_blocking_ = dag.total_blocking_power();
  for (const baselines::BaselineMethod& method : baselines::baseline_methods()) {
    Result<baselines::BaselinePlans> found = method.plans(dag);
    made.baselines_.push_back(found ? baselines::judge(dag, std::move(found->plans), made.ours_.bound)
                                    : model::Frontier{});
  }
  made.envpipe_ = envpipe;
  if (made.envpipe_) made.envpipe_->effective_energy = envpipe->energy - made.total_blocking_ * envpipe->time;
  return made;
}

Seconds EmulatedCase::planned_slowest() const { return paper_.steps()[paper_.steps().size() > 1 ? 1 : 0].planned_time; }

double EmulatedCase::planned_saving_pct(Seconds allowed, Seconds straggler) const {
  const auto& steps = paper_.steps();
  auto step =
      std::ranges::find_if(steps.begin() + (steps.size() > 1 ? 1 : 0), steps.end(),
                           [&](const planner::PerseusStep& s) { return s.planned_time <= allowed * model::kSameTime; });
  if (step == steps.end()) --step;
  const Seconds until = std::max(straggler, step->planned_time);
  return percent_less(step->planned_effective_energy + total_blocking_ * until,
                      all_max_.effective_energy + total_blocking_ * until);
}

double EmulatedCase::saving_pct(Joules effective_energy, Seconds own, Seconds straggler) const {
  return percent_less(effective_energy + total_blocking_ * std::max(own, straggler),
                      all_max_.effective_energy + total_blocking_ * std::max(all_max_.time, straggler));
}

EmulatedCase::CaseSavings EmulatedCase::savings(double allowed, double slowdown) const {
  const Seconds within = allowed * model::kSameTime * without_straggler();
  const Seconds straggler = slowdown * without_straggler();
  const auto of = [&](const model::Frontier& frontier) {
    const model::FrontierPoint& point = planner::look_up(frontier, within);
    return saving_pct(point.effective_energy, point.time, straggler);
  };
  CaseSavings savings;
  savings.paper_planned_pct = planned_saving_pct(allowed * planned_fastest(), slowdown * planned_fastest());
  const auto fastest_of = [&](const model::Frontier& frontier) {
    return saving_pct(frontier.points.back().effective_energy, frontier.points.back().time, straggler);
  };
  savings.paper_realized_pct = allowed > 1 ? of(paper_realized_) : fastest_of(paper_realized_);
  savings.ours_realized_pct = of(ours_);
  savings.ours_fastest_pct = allowed > 1 ? savings.ours_realized_pct : fastest_of(ours_);
  savings.bound_pct = saving_pct(ours_.bound.at(within), without_straggler(), straggler);
  if (envpipe_) savings.envpipe_pct = saving_pct(envpipe_->effective_energy, envpipe_->time, straggler);
  for (const model::Frontier& baseline : baselines_) {
    const bool late = !baseline.points.empty() && slowdown > 1 &&
                      planner::look_up(baseline, within).time > straggler * model::kSameTime;
    savings.baselines_pct.push_back(baseline.points.empty() || late ? std::nullopt : std::optional(of(baseline)));
  }
  return savings;
}

EmulatedCase::CaseSavings EmulatedCase::at_fastest() const { return savings(1, 1); }
EmulatedCase::CaseSavings EmulatedCase::at_slowdown(double slowdown) const { return savings(slowdown, slowdown); }

EmulatedCase::Shares EmulatedCase::shares(const Cost& all_max, const Cost& alone, const Cost& waiting,
                                          Seconds straggler, double slowdown, int waiting_pipelines) const {
  const auto job = [&](const Cost& others, const Cost& slow) {
    const Joules of_one = others.effective_energy + total_blocking_ * std::max(others.time, straggler);
    return waiting_pipelines * of_one + slowdown * (slow.effective_energy + total_blocking_ * slow.time);
  };
  const Joules reference = job(all_max, all_max), fastest = job(alone, alone), chosen = job(waiting, alone);
  return {percent_less(fastest, reference), percent_less(chosen, reference), percent_less(chosen, fastest)};
}

EmulatedCase::OfCluster EmulatedCase::of_cluster(double slowdown, int pipelines) const {
  OfCluster all;
  const int waiting = pipelines - 1;

  // As published: the starting schedule is not part of the frontier, and the baseline has the plan's floored time.
  const auto& steps = paper_.steps();
  const Seconds planned_straggler = slowdown * planned_fastest();
  auto best = steps.end() - 1;
  for (auto step = steps.begin() + (steps.size() > 1 ? 1 : 0); step != steps.end(); ++step) {
    if (step->planned_time <= model::kSameTime * planned_straggler && step->planned_energy < best->planned_energy)
      best = step;
  }
  const auto planned = [](const planner::PerseusStep& step) {
    return Cost{step.planned_time, step.planned_effective_energy};
  };
  all.paper_planned = shares({planned_fastest(), all_max_.effective_energy}, planned(steps.back()), planned(*best),
                             planned_straggler, slowdown, waiting);

  const Seconds straggler = slowdown * without_straggler();
  const Cost reference{all_max_.time, all_max_.effective_energy};
  const auto cost = [](const model::FrontierPoint& point) { return Cost{point.time, point.effective_energy}; };
  const auto of = [&](const model::FrontierPoint& alone, const model::FrontierPoint& at) {
    return shares(reference, cost(alone), cost(at), straggler, slowdown, waiting);
  };
  all.paper_realized =
      of(paper_realized_.points.back(), planner::look_up(paper_realized_, model::kSameTime * straggler));
  all.ours_realized = of(ours_.points[model::default_point(ours_, all_max_.time)],
                         planner::look_up(ours_, model::kSameTime * straggler));
  all.bound = shares(reference, {without_straggler(), ours_.bound.at(model::kSameTime * without_straggler())},
                     {without_straggler(), ours_.bound.at(model::kSameTime * straggler)}, straggler, slowdown, waiting);
  if (envpipe_) {
    const Cost one{envpipe_->time, envpipe_->effective_energy};
    all.envpipe = shares(reference, one, one, straggler, slowdown, waiting);
    all.envpipe_as_drawn = shares(reference, one, one, straggler, slowdown, pipelines + 1);
  }
  for (const model::Frontier& baseline : baselines_) {
    const bool ends = !baseline.points.empty() &&
                      planner::look_up(baseline, model::kSameTime * straggler).time <= model::kSameTime * straggler;
    all.baselines.push_back(
        ends ? std::optional(of(baseline.points.back(), planner::look_up(baseline, model::kSameTime * straggler)))
             : std::nullopt);
  }
  return all;
}

}  // namespace perseus::reproduction
