#include "planning/planner/perseus_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "planning/planner/capacity_dag.h"
#include "planning/planner/realize.h"

namespace perseus::planner {
namespace {

constexpr double kMostUnits = 1e7;

// Cost per computation of a step, in elementary operations (base/stop_check.h).
constexpr long kOperationsOfStep = 10;

/// Each computation at its slowest option.
Seconds slowest_iteration(const model::ComputationDag& dag) {
  model::Plan plan;
  for (const model::Computation& computation : dag.computations) {
    const auto& options = dag.types[computation.type].options;
    plan.push_back(
        static_cast<std::uint16_t>(std::ranges::max_element(options, {}, &model::Measurement::time) - options.begin()));
  }
  return Realizer(dag).realize(plan).time;
}

Status check_unit_time(const model::ComputationDag& dag, Seconds unit) {
  if (!(unit > Seconds(0)) || !std::isfinite(unit.value())) {
    return Error{ErrorCode::usage,
                 fmt::format("unit time is {} s; it must be a positive number of seconds", unit.value())};
  }
  const Seconds longest = slowest_iteration(dag);
  if (longest / unit > kMostUnits) {
    return Error{ErrorCode::usage, fmt::format("unit time is {} s, of which the slowest iteration, {} s, has {:.3g}; "
                                               "at most {:.0e} are allowed",
                                               unit.value(), longest.value(), longest / unit, kMostUnits)};
  }
  return Ok{};
}

/// `which`: the fastest or the slowest one of each computation.
std::vector<std::int64_t> durations_of(const CostCurves& curves, std::int64_t CostCurve::*which) {
  std::vector<std::int64_t> durations;
  for (const int curve : curves.curve_of) durations.push_back(curves.curves[curve].*which);
  return durations;
}

}  // namespace

void PerseusRun::apply_changes(std::size_t step, std::vector<std::int64_t>& durations) const {
  const std::size_t begin = step == 0 ? 0 : changes_end_[step - 1];
  for (std::size_t k = begin; k < changes_end_[step]; ++k) {
    const int change = changes_[k];
    if (change >= 0) {
      --durations[change];
    } else {
      ++durations[~change];
    }
  }
}

model::Plan PerseusRun::realize(const std::vector<std::int64_t>& durations) const {
  model::Plan plan;
  plan.reserve(durations.size());
  for (int i = 0; i < static_cast<int>(durations.size()); ++i) plan.push_back(curves_.of(i).option_at(durations[i]));
  return plan;
}

std::vector<std::int64_t> PerseusRun::durations(std::size_t step) const {
  auto durations = durations_of(curves_, &CostCurve::slowest);
  for (std::size_t k = 0; k <= step; ++k) apply_changes(k, durations);
  return durations;
}

model::Plan PerseusRun::plan(std::size_t step) const { return realize(durations(step)); }

model::Frontier PerseusRun::frontier() const {
  // Fastest first: keep each option that takes less energy than every faster option.
  std::vector<std::size_t> by_time(steps_.size());
  std::iota(by_time.begin(), by_time.end(), 0);
  std::ranges::stable_sort(by_time, [&](std::size_t a, std::size_t b) {
    if (steps_[a].time != steps_[b].time) return steps_[a].time < steps_[b].time;
    return steps_[a].effective_energy < steps_[b].effective_energy;
  });
  std::vector<std::size_t> kept;
  for (const std::size_t step : by_time) {
    if (kept.empty() || steps_[step].effective_energy < steps_[kept.back()].effective_energy) kept.push_back(step);
  }

  model::Frontier frontier;
  frontier.points.resize(kept.size());
  std::vector<std::size_t> point_of(steps_.size(), kept.size());
  for (std::size_t k = 0; k < kept.size(); ++k) point_of[kept[k]] = kept.size() - 1 - k;
  auto durations = durations_of(curves_, &CostCurve::slowest);
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    apply_changes(step, durations);
    if (point_of[step] == kept.size()) continue;
    const PerseusStep& from = steps_[step];
    frontier.points[point_of[step]] = {.time = from.time,
                                       .energy = from.energy,
                                       .effective_energy = from.effective_energy,
                                       .bound = Joules(0),
                                       .plan = realize(durations)};
  }
  return frontier;
}

Result<PerseusRun> plan_perseus(const model::ComputationDag& dag, const PerseusOptions& options, StopCheck& check) {
  const Seconds unit = options.unit_time;
  if (auto status = check_unit_time(dag, unit); !status.ok()) return status.error();

  PerseusRun run;
  run.curves_ = make_cost_curves(dag, unit);
  const CostCurves& curves = run.curves_;
  CapacityDag capacity_dag(dag, curves, unit);
  const std::int64_t shortest = capacity_dag.iteration_time(durations_of(curves, &CostCurve::fastest));
  auto durations = durations_of(curves, &CostCurve::slowest);
  const std::int64_t longest = capacity_dag.annotate(durations);

  double planned_effective_j = 0;
  for (int i = 0; i < static_cast<int>(durations.size()); ++i) {
    planned_effective_j += curves.of(i).energy_at(durations[i]);
  }
  model::Plan plan = run.realize(durations);
  Realizer realizer(dag);
  const Watts waiting = dag.total_blocking_power();
  PerseusStep step;
  const auto record = [&](std::int64_t planned_units, bool clocks_changed) {
    step.planned_time = static_cast<double>(planned_units) * unit;
    step.planned_effective_energy = Joules(planned_effective_j);
    step.planned_energy = step.planned_effective_energy + waiting * step.planned_time;
    if (clocks_changed) {
      const Realizer::Outcome realized = realizer.realize(plan);
      step.time = realized.time;
      step.effective_energy = realized.effective_energy;
      step.energy = step.effective_energy + waiting * step.time;
    }
    run.steps_.push_back(step);
    run.changes_end_.push_back(run.changes_.size());
  };
  record(longest, true);

  CapacityDag::Changes changes;
  while (capacity_dag.find_cut(changes)) {
    if (check.stop(kOperationsOfStep * static_cast<long>(durations.size()))) return planning_stopped();
    bool clocks_changed = false;
    const auto change = [&](int i, std::int64_t by) {
      const CostCurve& curve = curves.of(i);
      const std::int64_t before = durations[i], after = before + by;
      durations[i] = after;
      planned_effective_j += curve.energy_at(after) - curve.energy_at(before);
      run.changes_.push_back(by < 0 ? i : ~i);
      clocks_changed |= curve.option_at(after) != curve.option_at(before);
      plan[i] = curve.option_at(after);
    };
    for (const int i : changes.speed_up) change(i, -1);
    for (const int i : changes.slow_down) change(i, +1);
    const std::int64_t planned = capacity_dag.annotate(durations);
    record(planned, clocks_changed);
    if (options.progress && run.steps_.size() % 256 == 0) {
      options.progress(static_cast<double>(longest - planned) /
                       static_cast<double>(std::max<std::int64_t>(longest - shortest, 1)));
    }
  }
  if (options.progress) options.progress(1);
  return run;
}

}  // namespace perseus::planner
