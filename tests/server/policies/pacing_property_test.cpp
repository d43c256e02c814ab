// Paced jobs: whatever mixture of plan and ceiling their ranks run, the mean power is at most what the period counts
// as.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "planning/model/default_plan.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/realize.h"
#include "server/policies/pacing.h"

namespace perseus::policies {
namespace {

constexpr double kRounding = 1 + 1e-9;

int roll(int low, int high) { return *rc::gen::resize(100, rc::gen::inRange(low, high + 1)); }
double real(double low, double high) { return low + (high - low) * roll(0, 1000) / 1000.0; }

/// A few ranks without dependencies between them. Types may miss clocks; computing may draw less than waiting.
model::ComputationDag random_dag() {
  model::ComputationDag dag;
  dag.blocking_power = Watts(real(0, 100));
  const int ranks = roll(1, 3);
  for (int r = 0; r < ranks; ++r) {
    dag.accelerators.push_back(roll(1, 2));
    dag.rank_order.emplace_back();
    model::ComputationType& type = dag.types.emplace_back();
    type.stage = r;
    type.instruction = "forward";
    double time_s = real(0.1, 1);
    for (int clock_mhz = 100 * roll(8, 14), n = roll(1, 5); n > 0 && clock_mhz > 0;
         --n, clock_mhz -= 100 * roll(1, 2)) {
      type.options.push_back({Megahertz(clock_mhz), Seconds(time_s), Joules(time_s * real(50, 400)), {}, {}});
      time_s *= real(1, 1.5);
    }
    for (int c = roll(1, 4); c > 0; --c) {
      dag.rank_order[r].push_back(static_cast<int>(dag.computations.size()));
      dag.computations.push_back({r, r, -1});
    }
  }
  return dag;
}

model::Plan random_plan(const model::ComputationDag& dag) {
  model::Plan plan;
  for (int c = 0; c < std::ssize(dag.computations); ++c) {
    plan.push_back(static_cast<model::Plan::value_type>(roll(0, static_cast<int>(dag.type_of(c).options.size()) - 1)));
  }
  return plan;
}

/// Two plans: everything at maximum clock, and a slower one.
jobs::CharacterizedPipeline random_pipeline() {
  jobs::CharacterizedPipeline made;
  made.dag = random_dag();
  planner::Realizer realizer(made.dag);
  const auto point_of = [&](const model::Plan& plan) {
    const planner::Realizer::Outcome run = realizer.realize(plan);
    model::FrontierPoint point;
    point.time = run.time;
    point.effective_energy = run.effective_energy;
    point.energy = run.effective_energy + made.dag.total_blocking_power() * run.time;
    point.plan = plan;
    return point;
  };
  const model::FrontierPoint fastest = point_of(model::all_maximum_clock(made.dag));
  model::FrontierPoint slowest =
      point_of(roll(0, 1) == 0 ? model::minimum_energy_plan(made.dag) : random_plan(made.dag));
  slowest.time = std::max(slowest.time, fastest.time);
  made.frontier.points = {slowest, fastest};
  made.all_max_time = fastest.time;
  made.all_max_effective_energy = fastest.effective_energy;
  return made;
}

/// Each computation at its option of the plan, or at the ceiling.
model::Plan mixture(const model::ComputationDag& dag, model::Plan plan, int ceiling_mhz) {
  const int sides = roll(1, 3);
  for (int c = 0; c < static_cast<int>(plan.size()); ++c) {
    const std::vector<model::Measurement>& options = dag.type_of(c).options;
    if (roll(1, sides) == 1) continue;
    int at = 0;
    while (at + 1 < std::ssize(options) && options[at].clock.value() > ceiling_mhz) ++at;
    plan[c] = static_cast<model::Plan::value_type>(at);
  }
  return plan;
}

RC_GTEST_PROP(PacingProperty, NoMixtureOfPlanAndCeilingDrawsMoreThanCounts, ()) {
  std::vector<jobs::CharacterizedPipeline> pipelines;
  for (int g = 0; g < roll(1, 2); ++g) pipelines.push_back(random_pipeline());
  std::vector<PolicyScope> groups;
  Seconds slowest, full_speed;
  for (const jobs::CharacterizedPipeline& pipeline : pipelines) {
    groups.push_back({&pipeline, real(0.5, 2), roll(1, 2), roll(0, 1)});
    slowest = std::max(slowest, pipeline.frontier.points.front().time);
    full_speed = std::max(full_speed, pipeline.frontier.points.back().time);
  }
  RC_PRE(full_speed > Seconds(0));
  const double least_rate = real(0, 1);
  const double stretch = roll(0, 1) == 0 ? 1 : real(1, 3);
  const PacedRuns runs = paced_runs(groups, {slowest, {}, stretch}, least_rate);
  for (std::size_t k = 0; k < runs.powers.size(); ++k) {
    const Seconds time = runs.powers[k].time;
    const Watts power = runs.powers[k].power;
    RC_ASSERT(time >= slowest / kRounding);
    RC_ASSERT(full_speed / time >= least_rate / kRounding);
    RC_ASSERT(time <= std::max(slowest, kLongestWait_s) * kRounding);
    if (k > 0) {
      RC_ASSERT(time >= runs.powers[k - 1].time);
      RC_ASSERT(power <= runs.powers[k - 1].power * kRounding);
    }
    // Ranks may keep a lower ceiling, or a higher one, than that of the run: with a longer period.
    const bool own_ceiling = roll(0, 1) == 0;
    const int ceiling_mhz =
        own_ceiling ? runs.ceiling_mhz : runs.surplus[roll(0, static_cast<int>(runs.surplus.size()) - 1)].clock_mhz;
    Joules effective;
    Watts waiting;
    Seconds period = own_ceiling ? time : runs.period_at(runs.powers[k], ceiling_mhz);
    RC_ASSERT(period >= time);
    RC_ASSERT(period <= std::max(runs.powers.back().time, time));
    if (period >= runs.powers.back().time && !own_ceiling) continue;  // the least rate comes first
    for (const PolicyScope& group : groups) {
      const jobs::CharacterizedPipeline& of = *group.pipeline;
      planner::Realizer realizer(of.dag);
      for (int p = 0; p < group.count + group.stragglers; ++p) {
        const Seconds alone = model::time_without_straggler(of.frontier, of.all_max_time);
        const int own = p < group.count ? 0 : model::slowest_within(of.frontier, stretch * alone);
        const auto run = realizer.realize(mixture(of.dag, of.frontier.points[own].plan, ceiling_mhz));
        effective += group.scale * run.effective_energy;
        waiting += group.scale * of.dag.total_blocking_power();
        period = std::max(period, run.time);
      }
    }
    RC_ASSERT((effective + waiting * period) / period <= power * kRounding + Watts(1e-9));
  }
}

}  // namespace
}  // namespace perseus::policies
