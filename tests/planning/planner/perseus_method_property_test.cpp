// The published method on small random DAGs: the invariants of every step, and that each step is optimal.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "planning/checker/plan_run.h"
#include "planning/planner/candidate_options.h"
#include "planning/planner/perseus_method.h"

namespace perseus::planner {
namespace {

constexpr Seconds kUnit(0.001);

struct Limits {
  int computations = 12;
  int options = 8;
  int slowest_units = 40;
};

/// Ranks run their computations in order; more dependencies, some with latency, from lower to higher numbers.
model::ComputationDag random_dag(const Limits& limits) {
  model::ComputationDag dag;
  const int num_ranks = *rc::gen::inRange(1, 4);
  const int num_types = *rc::gen::inRange(1, 5);
  const int count = *rc::gen::inRange(1, limits.computations + 1);
  dag.blocking_power = Watts(*rc::gen::inRange(0, 200));
  dag.rank_order.resize(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) dag.accelerators.push_back(*rc::gen::inRange(1, 3));
  for (int type = 0; type < num_types; ++type) {
    model::ComputationType made;
    made.stage = type;
    made.instruction = "forward";
    const int num_options = *rc::gen::inRange(1, limits.options + 1);
    for (int k = 0; k < num_options; ++k) {
      model::Measurement option;
      option.clock = Megahertz(2000 - 15 * k);
      option.time = Seconds(1e-5 * *rc::gen::inRange(1, 100 * limits.slowest_units));
      option.energy = Joules(0.01 * *rc::gen::inRange(0, 1000));
      made.options.push_back(option);
    }
    dag.types.push_back(made);
  }
  for (int i = 0; i < count; ++i) {
    const int rank = *rc::gen::inRange(0, num_ranks);
    dag.computations.push_back({*rc::gen::inRange(0, num_types), rank, -1});
    if (!dag.rank_order[rank].empty()) dag.dependencies.push_back({dag.rank_order[rank].back(), i, Seconds(0)});
    dag.rank_order[rank].push_back(i);
    const int more = i == 0 ? 0 : *rc::gen::inRange(0, 3);
    for (int k = 0; k < more; ++k) {
      dag.dependencies.push_back({*rc::gen::inRange(0, i), i, Seconds(1e-4 * *rc::gen::inRange(0, 40))});
    }
  }
  RC_ASSERT(dag.validate().ok());
  return dag;
}

template <class Duration, class Latency>
auto longest_path(const model::ComputationDag& dag, const std::vector<Duration>& durations, Latency latency) {
  std::vector<Duration> finish(durations);
  for (int i = 0; i < static_cast<int>(durations.size()); ++i) {
    Duration start = 0;
    for (const model::Dependency& d : dag.dependencies) {
      if (d.after == i) start = std::max<Duration>(start, finish[d.before] + latency(d));
    }
    finish[i] = start + durations[i];
  }
  return *std::ranges::max_element(finish);
}

std::int64_t planned_units(const model::ComputationDag& dag, const std::vector<std::int64_t>& durations) {
  return longest_path(dag, durations, [](const model::Dependency& d) { return floor_to_units(d.latency, kUnit); });
}

double fitted_energy_j(const PerseusRun& run, const std::vector<std::int64_t>& durations) {
  double sum = 0;
  for (int i = 0; i < static_cast<int>(durations.size()); ++i) sum += run.curves().of(i).energy_at(durations[i]);
  return sum;
}

RC_GTEST_PROP(PerseusMethod, KeepsItsPromisesAtEveryStep, ()) {
  const model::ComputationDag dag = random_dag({});
  const PerseusRun run = plan_perseus(dag, {.unit_time = kUnit, .progress = {}}).value();
  const auto& steps = run.steps();
  std::vector<std::int64_t> slowest, fastest;
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    slowest.push_back(run.curves().of(i).slowest);
    fastest.push_back(run.curves().of(i).fastest);
  }
  const std::int64_t longest = planned_units(dag, slowest);
  RC_ASSERT(static_cast<std::int64_t>(steps.size()) == longest - planned_units(dag, fastest) + 1);

  const double scale = std::max(1.0, std::abs(steps.back().planned_effective_energy.value()));
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const PerseusStep& step = steps[k];
    const auto durations = run.durations(k);
    // Planned: tau less than before, never for less energy, consistent with the durations.
    const std::int64_t units = longest - static_cast<std::int64_t>(k);
    RC_ASSERT(planned_units(dag, durations) == units);
    RC_ASSERT(step.planned_time == static_cast<double>(units) * kUnit);
    RC_ASSERT(std::abs(step.planned_effective_energy.value() - fitted_energy_j(run, durations)) <= 1e-9 * scale);
    RC_ASSERT(step.planned_energy == step.planned_effective_energy + dag.total_blocking_power() * step.planned_time);
    if (k > 0) {
      const double change = (step.planned_effective_energy - steps[k - 1].planned_effective_energy).value();
      RC_ASSERT(change >= -1e-9 * scale);
    }
    // Realized: no clock slower than planned except for flooring, and an independent run agrees.
    const model::Plan plan = run.plan(k);
    std::vector<double> planned_and_floored;
    for (int i = 0; i < static_cast<int>(plan.size()); ++i) {
      const model::Measurement& chosen = dag.type_of(i).options[plan[i]];
      RC_ASSERT(durations[i] >= run.curves().of(i).fastest);
      RC_ASSERT(durations[i] <= run.curves().of(i).slowest);
      RC_ASSERT(floor_to_units(chosen.time, kUnit) <= durations[i]);
      planned_and_floored.push_back(static_cast<double>(durations[i] + 1) * kUnit.value());
    }
    const checker::PlanRun checked = checker::run_plan(dag, plan);
    RC_ASSERT(std::abs((step.time - checked.makespan).value()) <= 1e-12);
    RC_ASSERT(std::abs((step.energy - checked.energy).value()) <= 1e-9 * scale);
    RC_ASSERT(std::abs((step.effective_energy - checked.effective_energy).value()) <= 1e-9 * scale);
    const double at_most =
        longest_path(dag, planned_and_floored, [](const model::Dependency& d) { return d.latency.value(); });
    RC_ASSERT(step.time.value() <= at_most + 1e-12);
  }
}

/// The next combination of durations between fastest and slowest; false after the last.
bool next_durations(const CostCurves& curves, std::vector<std::int64_t>& durations) {
  for (int i = 0; i < static_cast<int>(durations.size()); ++i) {
    if (durations[i] < curves.of(i).slowest) {
      ++durations[i];
      return true;
    }
    durations[i] = curves.of(i).fastest;
  }
  return false;
}

RC_GTEST_PROP(PerseusMethod, NoDurationsOfThatLengthTakeLess, ()) {
  const model::ComputationDag dag = random_dag({.computations = 5, .options = 3, .slowest_units = 6});
  const PerseusRun run = plan_perseus(dag, {.unit_time = kUnit, .progress = {}}).value();
  std::vector<std::int64_t> durations;
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) durations.push_back(run.curves().of(i).fastest);
  std::vector<double> least(run.steps().size(), std::numeric_limits<double>::infinity());
  do {
    const auto units = planned_units(dag, durations);
    const auto longest = std::llround(run.steps().front().planned_time / kUnit);
    // Also the best for every step that allows more time.
    for (std::int64_t k = 0; k <= longest - units; ++k) {
      least[k] = std::min(least[k], fitted_energy_j(run, durations));
    }
  } while (next_durations(run.curves(), durations));
  for (std::size_t k = 0; k < least.size(); ++k) {
    RC_ASSERT(std::abs(run.steps()[k].planned_effective_energy.value() - least[k]) <= 1e-8);
  }
}

RC_GTEST_PROP(PerseusMethod, FrontierIsTheParetoSetOfItsSteps, ()) {
  const model::ComputationDag dag = random_dag({});
  const PerseusRun run = plan_perseus(dag, {.unit_time = kUnit, .progress = {}}).value();
  const model::Frontier frontier = run.frontier();
  RC_ASSERT(!frontier.points.empty());
  for (std::size_t k = 0; k < frontier.points.size(); ++k) {
    const model::FrontierPoint& point = frontier.points[k];
    if (k > 0) {
      RC_ASSERT(point.time < frontier.points[k - 1].time);
      RC_ASSERT(point.effective_energy > frontier.points[k - 1].effective_energy);
    }
    const checker::PlanRun checked = checker::run_plan(dag, point.plan);
    RC_ASSERT(std::abs((point.time - checked.makespan).value()) <= 1e-12);
    RC_ASSERT(std::abs((point.energy - checked.energy).value()) <= 1e-9 * (1 + point.energy.value()));
  }
  for (const PerseusStep& step : run.steps()) {
    RC_ASSERT(std::ranges::any_of(frontier.points, [&](const model::FrontierPoint& point) {
      return point.time <= step.time && point.effective_energy <= step.effective_energy;
    }));
  }
}

// The published code uses 10000.0 as infinity and 1e-6 J as zero here.
RC_GTEST_PROP(PerseusMethod, TheUnitOfEnergyDoesNotMatter, ()) {
  model::ComputationDag dag = random_dag({});
  const PerseusRun run = plan_perseus(dag, {.unit_time = kUnit, .progress = {}}).value();
  const double scale = *rc::gen::element(1e-6, 1e-3, 1e4, 1e9);
  dag.blocking_power = dag.blocking_power * scale;
  for (model::ComputationType& type : dag.types) {
    for (model::Measurement& option : type.options) option.energy = option.energy * scale;
  }
  const PerseusRun scaled = plan_perseus(dag, {.unit_time = kUnit, .progress = {}}).value();
  RC_ASSERT(scaled.steps().size() == run.steps().size());
  for (std::size_t k = 0; k < run.steps().size(); ++k) {
    const double energy_j = run.steps()[k].planned_energy.value();
    const double scaled_j = scaled.steps()[k].planned_energy.value() / scale;
    RC_ASSERT(std::abs(energy_j - scaled_j) <= 1e-6 * (1 + std::abs(energy_j)));
  }
}

}  // namespace
}  // namespace perseus::planner
