// Properties of every cluster: the parts of the energy add up to the integral of power, no result beats the lower
// bound, no GPU does two things at once, and the order of pipelines and stragglers does not matter.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "oracles/dice.h"
#include "oracles/instances.h"
#include "planning/checker/plan_run.h"
#include "planning/model/default_plan.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "planning/model/schedule.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"
#include "simulation/emulator/condition.h"
#include "simulation/emulator/drawn_stragglers.h"
#include "simulation/emulator/emulate.h"

namespace perseus::emulator {
namespace {

using testing::Dice;
using testing::ShrinkingDice;

constexpr double rounding = 1e-9;

int below(Dice& dice, int count) { return dice.roll(0, count - 1); }

struct RandomJob {
  model::Scenario scenario;
  std::vector<PipelineKind> kinds;
  std::vector<model::Straggler> stragglers;
};

PipelineKind random_kind(Dice& dice, const model::Scenario& scenario) {
  const std::vector<std::string>& schedules = model::schedule_names();
  const std::string& schedule = schedules[below(dice, static_cast<int>(schedules.size()))];
  PipelineKind kind{"kind",
                    testing::random_pipeline(dice, schedule, {3, 4, 4, 1e300}),
                    {},
                    1 + below(dice, 3),
                    scenario.tensor_parallel};
  kind.dag.blocking_power = scenario.blocking_power;
  kind.bound = planner::compute_lower_bound(kind.dag).bound;
  return kind;
}

model::Straggler random_straggler(Dice& dice, const RandomJob& job) {
  model::Straggler s;
  s.pipeline = below(dice, job.scenario.num_pipelines());
  s.hardship.cause = static_cast<model::StragglerCause>(below(dice, 4));
  s.hardship.slowdown = 1 + 0.01 * below(dice, 150);
  if (below(dice, 2) == 0) s.hardship.stage = below(dice, 3);
  if (below(dice, 2) == 0) s.hardship.gpus = 1;
  s.at = Seconds(0.1 * below(dice, 100));
  s.duration = Seconds(0.1 * (1 + below(dice, 100)));
  if (s.hardship.cause == model::StragglerCause::failure) {
    // Applies to the kind with the fewest GPUs.
    s.hardship.becomes =
        static_cast<int>(std::ranges::min_element(job.kinds, {}, &PipelineKind::gpus) - job.kinds.begin());
    s.hardship.restart = Seconds(below(dice, 3));
  }
  return s;
}

RandomJob random_job(Dice& dice) {
  RandomJob job;
  model::Scenario& scenario = job.scenario;
  scenario.blocking_power = Watts(below(dice, 100));
  scenario.idle_power = Watts(below(dice, 60));
  scenario.tensor_parallel = 1 + below(dice, 8);
  scenario.timing.load = Seconds(0.01 * below(dice, 20));
  scenario.timing.synchronization = Seconds(0.01 * below(dice, 20));
  scenario.timing.optimizer = Seconds(0.01 * below(dice, 20));
  if (below(dice, 2) == 0) scenario.timing.synchronization_power = Watts(below(dice, 300));
  if (below(dice, 2) == 0) scenario.timing.optimizer_power = Watts(below(dice, 300));
  scenario.delivery.notice_delay = Seconds(0.1 * (below(dice, 100) - 30));
  scenario.delivery.deploy = Seconds(0.1 * below(dice, 10));
  scenario.iterations = 1 + below(dice, 40);
  for (int k = 0; k < 2; ++k) {
    job.kinds.push_back(random_kind(dice, scenario));
    scenario.kinds.push_back({fmt::format("kind {}", k), "", "", 1, 1, job.kinds.back().pipelines, ""});
  }
  for (int i = below(dice, 6); i > 0; --i) job.stragglers.push_back(random_straggler(dice, job));
  return job;
}

/// A frontier of a few arbitrary plans.
MethodPlans random_plans(Dice& dice, const std::vector<PipelineKind>& kinds) {
  MethodPlans plans{"random", {}, {}, {}};
  for (const PipelineKind& kind : kinds) {
    model::Frontier frontier;
    frontier.bound = kind.bound;
    for (int i = 0; i < 3; ++i) {
      const model::Plan plan = testing::random_plan(dice, kind.dag);
      const checker::PlanRun s = checker::run_plan(kind.dag, plan);
      frontier.points.push_back({s.makespan, s.energy, s.effective_energy, {}, plan});
    }
    std::ranges::sort(frontier.points, std::ranges::greater{}, &model::FrontierPoint::time);
    plans.default_of_kind.push_back(frontier.points.size() - 1);
    plans.own_of_kind.push_back(frontier.points.size() - 1);
    plans.of_kind.push_back(std::move(frontier));
  }
  return plans;
}

/// The first violation, or nothing.
std::string check_iteration(const RandomJob& job, const std::vector<PipelineGroup>& groups,
                            const ClusterIteration& iteration, long spare_gpus) {
  const double total = iteration.energy.total().value();
  const double integral = (iteration.power.mean * iteration.time).value();
  if (std::abs(total - integral) > rounding * std::max(1.0, std::abs(total))) {
    return fmt::format("parts add up to {} J, power to {} J", total, integral);
  }
  double least = (static_cast<double>(spare_gpus) * job.scenario.idle_power * iteration.time).value();
  double scale = std::abs(total);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const PipelineGroup& group = groups[g];
    const PipelineKind& kind = job.kinds[group.kind];
    const EnergyParts& one = iteration.of_one[g];
    const Seconds own = iteration.pace - job.scenario.timing.load - group.condition.stall;
    const Joules bound = kind.tensor_parallel * kind.bound.at(own) + kind.waiting_power() * iteration.pace;
    least += group.pipelines * bound.value();
    scale += std::abs(kind.tensor_parallel * kind.bound.vertices.front().effective_energy.value());
    if (one.intrinsic_bloat.value() < -rounding * scale) {
      return fmt::format("intrinsic bloat {} J", one.intrinsic_bloat.value());
    }
    if (one.extrinsic_bloat.value() < -rounding * scale) {
      return fmt::format("extrinsic bloat {} J", one.extrinsic_bloat.value());
    }
    if (one.blocking.value() < -rounding * scale) return fmt::format("blocking {} J", one.blocking.value());
    if (one.idle.value() != 0) return "a pipeline's GPUs idle";
  }
  if (total < least - rounding * scale) return fmt::format("{} J beats the bound of {} J", total, least);
  return "";
}

RC_GTEST_PROP(EmulateProperty, EveryIterationAddsUpAndNoneBeatsTheBound, ()) {
  ShrinkingDice dice;
  const RandomJob job = random_job(dice);
  for (const MethodPlans& plans : {random_plans(dice, job.kinds), *plan_method("exact", job.kinds, job.scenario)}) {
    Emulator emulator(job.scenario, job.kinds, plans);
    for (const Response response : {Response::look_up, Response::default_plans}) {
      const SteadyState state = emulator.steady_state(job.stragglers, response);
      long spare = 0;
      for (const PipelineKind& kind : job.kinds) spare += static_cast<long>(kind.pipelines) * kind.gpus();
      for (const PipelineGroup& g : state.groups) spare -= static_cast<long>(g.pipelines) * job.kinds[g.kind].gpus();
      const std::string wrong = check_iteration(job, state.groups, state.iteration, spare);
      if (!wrong.empty()) RC_FAIL(plans.name + ": " + wrong);
    }
  }
}

RC_GTEST_PROP(EmulateProperty, KnowingStragglersNeverCostsEnergyOrTime, ()) {
  ShrinkingDice dice;
  const RandomJob job = random_job(dice);
  const MethodPlans plans = *plan_method("exact", job.kinds, job.scenario);
  Emulator emulator(job.scenario, job.kinds, plans);
  const ClusterIteration slowed = emulator.steady_state(job.stragglers, Response::look_up).iteration;
  const ClusterIteration fastest = emulator.steady_state(job.stragglers, Response::default_plans).iteration;
  RC_ASSERT(slowed.time <= fastest.time * (1 + rounding));
  const Joules slack = rounding * (fastest.energy.useful + fastest.energy.blocking + Joules(1));
  RC_ASSERT(slowed.energy.total() <= fastest.energy.total() + slack);
}

RC_GTEST_PROP(EmulateProperty, AStragglerRunsWithoutTheToleranceAsOnTheServer, ()) {
  ShrinkingDice dice;
  RandomJob job = random_job(dice);
  job.scenario.slowdown = 0.01 * below(dice, 50);
  job.stragglers = {model::Straggler{}};
  job.stragglers[0].pipeline = below(dice, job.scenario.num_pipelines());
  job.stragglers[0].hardship.slowdown = 1.01 + 0.01 * below(dice, 150);
  const MethodPlans plans = *plan_method("exact", job.kinds, job.scenario);
  Emulator emulator(job.scenario, job.kinds, plans);
  for (const Response response : {Response::look_up, Response::default_plans}) {
    const double tolerated = response == Response::look_up ? 0 : job.scenario.slowdown;
    for (const PipelineGroup& group : emulator.steady_state(job.stragglers, response).groups) {
      if (group.condition.healthy()) continue;
      const model::ComputationDag& dag = job.kinds[group.kind].dag;
      const Seconds t_max = checker::run_plan(dag, model::all_maximum_clock(dag)).makespan;
      // server/policies/deployment.cpp: T of T'/T, and the plan that a straggler keeps.
      const Seconds own = model::planned_time(plans.of_kind[group.kind], t_max, {tolerated, false});
      RC_ASSERT(static_cast<int>(group.point) == model::slowest_within(plans.of_kind[group.kind], own));
    }
  }
}

RC_GTEST_PROP(EmulateProperty, ARunIsTheSumOfItsSegments, ()) {
  ShrinkingDice dice;
  const RandomJob job = random_job(dice);
  const MethodPlans plans = random_plans(dice, job.kinds);
  const Emulation run = Emulator(job.scenario, job.kinds, plans).run(job.stragglers, Response::look_up);
  RC_ASSERT(run.iterations == *job.scenario.iterations);
  Seconds now;
  double energy = 0, integral = 0;
  long iterations = 0;
  for (const Segment& s : run.segments) {
    RC_ASSERT(std::abs((s.start - now).value()) <= rounding * (1 + now.value()));
    now = s.start + s.length();
    energy += s.energy.total().value();
    integral += (s.power.mean * s.length()).value();
    iterations += s.iterations;
    RC_ASSERT(s.power.lowest <= s.power.mean * (1 + rounding));
    RC_ASSERT(s.power.mean <= s.power.highest * (1 + rounding));
  }
  RC_ASSERT(iterations == run.iterations);
  const double total = run.energy.total().value();
  RC_ASSERT(std::abs(energy - total) <= rounding * (1 + std::abs(total)));
  RC_ASSERT(std::abs(integral - total) <= rounding * (1 + std::abs(total)));
  RC_ASSERT(run.band_w2s >= 0);
  RC_ASSERT(run.shortest_iteration <= run.longest_iteration);
}

RC_GTEST_PROP(EmulateProperty, TheOrderOfPipelinesAndStragglersDoesNotMatter, ()) {
  ShrinkingDice dice;
  const RandomJob job = random_job(dice);
  const MethodPlans plans = random_plans(dice, job.kinds);
  std::vector<model::Straggler> others = job.stragglers;
  std::ranges::reverse(others);
  // Each kind's pipelines in reverse order.
  for (model::Straggler& s : others) {
    const int kind = kind_of_pipeline(job.kinds, s.pipeline);
    int first = 0;
    for (int k = 0; k < kind; ++k) first += job.kinds[k].pipelines;
    s.pipeline = 2 * first + job.kinds[kind].pipelines - 1 - s.pipeline;
  }
  const Emulation run = Emulator(job.scenario, job.kinds, plans).run(job.stragglers, Response::look_up);
  const Emulation other = Emulator(job.scenario, job.kinds, plans).run(others, Response::look_up);
  RC_ASSERT(run.time == other.time);
  RC_ASSERT(run.energy.total() == other.energy.total());
  RC_ASSERT(run.energy.blocking == other.energy.blocking);
  RC_ASSERT(run.band_w2s == other.band_w2s);
  RC_ASSERT(run.segments.size() == other.segments.size());
}

RC_GTEST_PROP(EmulateProperty, NoGpuDoesTwoThingsAtOnceAndThrottlingNeverSpeedsUp, ()) {
  ShrinkingDice dice;
  const RandomJob job = random_job(dice);
  const PipelineKind& kind = job.kinds[0];
  std::vector<const model::Hardship*> hardships;
  for (const model::Straggler& s : job.stragglers) hardships.push_back(&s.hardship);
  const model::ComputationDag hampered = throttled_dag(kind.dag, condition_of(hardships, kind));
  RC_ASSERT(hampered.validate().ok());
  const model::Plan plan = testing::random_plan(dice, kind.dag);
  const checker::PlanRun s = checker::run_plan(hampered, plan), free = checker::run_plan(kind.dag, plan);
  for (const std::vector<int>& order : hampered.rank_order) {
    for (std::size_t i = 1; i < order.size(); ++i) RC_ASSERT(s.start[order[i]] >= s.end[order[i - 1]]);
  }
  RC_ASSERT(s.makespan >= free.makespan);
  for (std::size_t i = 0; i < plan.size(); ++i)
    RC_ASSERT(s.end[i] - s.start[i] >= (free.end[i] - free.start[i]) * (1 - rounding));
  RC_ASSERT(s.effective_energy.value() >=
            kind.bound.at(s.makespan).value() -
                rounding * (1 + std::abs(kind.bound.vertices.front().effective_energy.value())));
}

RC_GTEST_PROP(EmulateProperty, WhereTheMaximumClockIsDearestSavingsAreNotNegative, ()) {
  // Options of falling clock are slower and need less, effectively, so that no plan needs more than all-max.
  ShrinkingDice dice;
  model::Profile profile;
  const int stages = 1 + below(dice, 3);
  profile.accelerators.assign(stages, 1);
  for (int stage = 0; stage < stages; ++stage) {
    for (const char* instruction : {"forward", "backward"}) {
      model::ProfileEntry entry{stage, instruction, {}};
      double time_s = 0.1 + 0.01 * below(dice, 50), energy_j = 100 + below(dice, 50);
      for (int k = 0, last = 1 + below(dice, 5); k < last; ++k) {
        entry.measurements.push_back({Megahertz(1500 - 100 * k), Seconds(time_s), Joules(energy_j), {}, {}, 1});
        const double longer_s = 0.001 * (1 + below(dice, 40));
        time_s += longer_s;
        energy_j += 50 * longer_s - 0.1 * (1 + below(dice, 30));
      }
      profile.entries.push_back(entry);
    }
  }
  model::Scenario scenario;
  scenario.blocking_power = Watts(50);
  scenario.iterations = 1;
  scenario.kinds = {{"one", "", "1f1b", 1, 1 + below(dice, 6), 3, ""}};
  const std::vector<PipelineKind> kinds{*make_kind(profile, scenario.kinds[0], scenario)};
  RandomJob job{scenario, kinds, {}};
  for (int i = below(dice, 3); i > 0; --i) {
    job.stragglers.push_back(random_straggler(dice, job));
    if (job.stragglers.back().hardship.cause == model::StragglerCause::failure) job.stragglers.pop_back();
    // If only one stage is throttled, computations that the plan slows down elsewhere may delay it.
    if (!job.stragglers.empty()) job.stragglers.back().hardship.stage.reset();
  }
  const MethodPlans all_max = *plan_method("all-max", kinds, scenario);
  const Joules reference =
      Emulator(scenario, kinds, all_max).steady_state(job.stragglers, Response::look_up).iteration.energy.total();
  const MethodPlans plans = *plan_method("exact", kinds, scenario);
  Emulator emulator(scenario, kinds, plans);
  for (const Response response : {Response::look_up, Response::default_plans}) {
    RC_ASSERT(emulator.steady_state(job.stragglers, response).iteration.energy.total() <= reference * (1 + rounding));
  }
}

}  // namespace
}  // namespace perseus::emulator
