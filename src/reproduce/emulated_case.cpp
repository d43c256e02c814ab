#include "reproduce/emulated_case.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "baselines/methods.h"
#include "planner/look_up.h"
#include "report/timeline.h"

namespace perseus {
namespace {

/// Sums of the same times in another order differ in their last bits.
constexpr double same_time = 1 + 1e-9;

double percent_less(Joules energy, Joules than) { return 100 * (1 - energy / than); }

}  // namespace

FrontierComparison compare_frontiers(const PerseusRun& run, const std::vector<PublishedPoint>& published, Seconds tau) {
  std::unordered_map<long long, Joules> ours;
  for (const PerseusStep& step : run.steps()) ours[std::llround(step.planned_time / tau)] = step.planned_energy;
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

Result<EmulatedCase> EmulatedCase::plan(const ComputationDag& dag, Seconds tau, const PlannerOptions& planner,
                                        std::optional<IterationCost> envpipe) {
  EmulatedCase made;
  Result<PerseusRun> run = plan_perseus(dag, {tau, {}});
  if (!run) return run.error();
  made.paper_ = *std::move(run);
  made.paper_realised_ = made.paper_.frontier();
  made.ours_ = plan_exact(dag, planner);
  const Timeline all_max = timeline_of(dag, all_maximum_clock(dag));
  made.all_max_ = {all_max.makespan, all_max.energy, all_max.effective_energy};
  made.total_blocking_ = dag.total_blocking_power();
  for (const BaselineMethod& method : baseline_methods()) {
    Result<BaselinePlans> found = method.plans(dag);
    made.baselines_.push_back(found ? judge(dag, std::move(found->plans), made.ours_.bound) : Frontier{});
  }
  made.envpipe_ = envpipe;
  if (made.envpipe_) made.envpipe_->effective_energy = envpipe->energy - made.total_blocking_ * envpipe->time;
  return made;
}

Seconds EmulatedCase::planned_slowest() const { return paper_.steps()[paper_.steps().size() > 1 ? 1 : 0].planned_time; }

double EmulatedCase::planned_saving_pct(Seconds allowed, Seconds straggler) const {
  const auto& steps = paper_.steps();
  auto step = std::ranges::find_if(steps.begin() + (steps.size() > 1 ? 1 : 0), steps.end(),
                                   [&](const PerseusStep& s) { return s.planned_time <= allowed * same_time; });
  if (step == steps.end()) --step;
  const Seconds until = std::max(straggler, step->planned_time);
  return percent_less(step->planned_effective_energy + total_blocking_ * until,
                      all_max_.effective_energy + total_blocking_ * until);
}

double EmulatedCase::saving_pct(Joules effective_energy, Seconds own, Seconds straggler) const {
  return percent_less(effective_energy + total_blocking_ * std::max(own, straggler),
                      all_max_.effective_energy + total_blocking_ * std::max(all_max_.time, straggler));
}

EmulatedCase::Savings EmulatedCase::savings(double allowed, double slowdown) const {
  const Seconds within = allowed * same_time * fastest();
  const Seconds straggler = slowdown * fastest();
  const auto of = [&](const Frontier& frontier) {
    const FrontierPoint& point = look_up(frontier, within);
    return saving_pct(point.effective_energy, point.time, straggler);
  };
  Savings savings;
  savings.paper_planned_pct = planned_saving_pct(allowed * planned_fastest(), slowdown * planned_fastest());
  savings.paper_realised_pct = of(paper_realised_);
  savings.ours_realised_pct = of(ours_);
  savings.bound_pct = saving_pct(ours_.bound.at(within), fastest(), straggler);
  if (envpipe_) savings.envpipe_pct = saving_pct(envpipe_->effective_energy, envpipe_->time, straggler);
  for (const Frontier& baseline : baselines_) {
    const bool late =
        !baseline.points.empty() && slowdown > 1 && look_up(baseline, within).time > straggler * same_time;
    savings.baselines_pct.push_back(baseline.points.empty() || late ? std::nullopt : std::optional(of(baseline)));
  }
  return savings;
}

EmulatedCase::Savings EmulatedCase::at_fastest() const { return savings(1, 1); }
EmulatedCase::Savings EmulatedCase::at_slowdown(double slowdown) const { return savings(slowdown, slowdown); }
EmulatedCase::Savings EmulatedCase::intrinsic_at_slowdown(double slowdown) const { return savings(1, slowdown); }

}  // namespace perseus
