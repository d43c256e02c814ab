// The exact planner's realized frontier: verified by the independent checker, compared with brute force, and on
// degenerate pipelines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "oracles/brute_force.h"
#include "oracles/dice.h"
#include "oracles/instances.h"
#include "oracles/longest_path.h"
#include "oracles/published.h"
#include "planning/checker/certificate_check.h"
#include "planning/checker/verify_plan.h"
#include "planning/model/build_dag.h"
#include "planning/model/default_plan.h"
#include "planning/model/make_schedule.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/choices.h"
#include "planning/planner/exact.h"
#include "planning/planner/look_up.h"
#include "planning/planner/lower_bound.h"
#include "planning/planner/realize.h"
#include "planning/planner/relaxation.h"
#include "planning/planner/rounding.h"
#include "tests/support/shared_data.h"

namespace perseus::planner {
namespace {

using testing::BruteForce;
using testing::ShrinkingDice;

constexpr testing::InstanceLimits kTiny{3, 3, 4, 3000};

PlannerOptions few_deadlines(Effort effort = Effort::normal) {
  PlannerOptions options;
  options.deadlines = 50;
  options.effort = effort;
  return options;
}

/// Empty if the frontier verifies, certificates in every piece of its bound included; else the first finding.
std::string first_finding(const model::ComputationDag& dag, const model::Frontier& frontier) {
  const LowerBoundResult proof = compute_lower_bound(dag, checker::deadlines_to_certify(frontier.bound));
  const checker::Verification v = checker::verify_frontier(dag, frontier, proof.certificates);
  if (!v.ok()) return v.findings[0].message;
  if (v.fastest_time > v.max_clock_makespan) return "the fastest point is slower than all-maximum-clock";
  return "";
}

RC_GTEST_PROP(ExactFrontier, Verifies, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const Effort effort = std::array{Effort::low, Effort::normal, Effort::high}[dice.roll(0, 2)];
  RC_ASSERT(first_finding(dag, plan_exact(dag, few_deadlines(effort))) == "");
}

// Large enough for prices in steps.
TEST(ExactFrontier, OfALargePipelineVerifies) {
  testing::SeededDice dice(1);
  const Result<model::Schedule> schedule = model::make_schedule("1f1b", {128, 16, 1});
  const model::Profile profile = testing::random_profile(dice, *schedule, 4, Watts(80));
  const Result<model::ComputationDag> dag = model::build_dag(profile, *schedule, {Watts(80), Seconds(0)});
  ASSERT_GT(price_step_of(*dag, make_kinds(*dag)), Watts(0));
  EXPECT_EQ(first_finding(*dag, plan_exact(*dag, few_deadlines(Effort::low))), "");
}

RC_GTEST_PROP(ExactFrontier, IsNeverBetterThanBruteForceAndItsBoundNeverWorse, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice, kTiny);
  const BruteForce brute_force(dag);
  for (const model::FrontierPoint& point : plan_exact(dag, few_deadlines()).points) {
    const Joules optimum = brute_force.best_at(point.time * (1 + 1e-12)) + dag.total_blocking_power() * point.time;
    const Joules rounding = 1e-9 * point.energy;
    RC_ASSERT(point.energy >= optimum - rounding);
    RC_ASSERT(point.bound <= optimum + rounding);
  }
}

RC_GTEST_PROP(ExactFrontier, IsTheOptimumOfFewPlans, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice, kTiny);
  RC_PRE(testing::num_plans(dag) <= 20'000);
  const BruteForce brute_force(dag);
  const model::Frontier frontier = plan_exact(dag, few_deadlines(Effort::low));
  for (const testing::Realized& best : brute_force.pareto_set()) {
    const model::FrontierPoint& found = look_up(frontier, best.time * (1 + 1e-12));
    RC_ASSERT(found.time <= best.time * (1 + 1e-12));
    RC_ASSERT(found.effective_energy <= best.effective_energy + 1e-9 * found.energy);
  }
}

RC_GTEST_PROP(ExactFrontier, HasNoNegativeGap, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  for (const Effort effort : {Effort::low, Effort::normal, Effort::high}) {
    for (const model::FrontierPoint& point : plan_exact(dag, few_deadlines(effort)).points)
      RC_ASSERT(point.gap_pct() >= 0);
  }
}

RC_GTEST_PROP(ExactFrontier, IsNeverWorseWithMoreEffort, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice, kTiny);
  // Otherwise the planner may omit points because there are too many.
  const BruteForce brute_force(dag);
  RC_PRE(brute_force.pareto_set().size() <= 50u);
  model::Frontier less = plan_exact(dag, few_deadlines(Effort::low));
  for (const Effort effort : {Effort::normal, Effort::high}) {
    model::Frontier more = plan_exact(dag, few_deadlines(effort));
    for (const model::FrontierPoint& point : less.points) {
      const model::FrontierPoint& better = look_up(more, point.time);
      RC_ASSERT(better.time <= point.time);
      RC_ASSERT(better.effective_energy <= point.effective_energy);
    }
    less = std::move(more);
  }
}

// Asking for what is realized anyway changes nothing.
RC_GTEST_PROP(ExactFrontier, UsualTolerancesAreRealizedByDefault, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  PlannerOptions options = few_deadlines();
  const model::Frontier frontier = plan_exact(dag, options);
  const Seconds t_max = Realizer(dag).realize(model::all_maximum_clock(dag)).time;
  for (const double tolerance : model::kUsualTolerances) options.also.push_back((1 + tolerance) * t_max);
  const model::Frontier asked = plan_exact(dag, options);
  RC_ASSERT(frontier.points.size() == asked.points.size());
  for (std::size_t i = 0; i < asked.points.size(); ++i) {
    RC_ASSERT(frontier.points[i].time == asked.points[i].time);
    RC_ASSERT(frontier.points[i].energy == asked.points[i].energy);
  }
}

RC_GTEST_PROP(Rounding, KeepsTheDeadlineIfPunctual, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const Kinds kinds = make_kinds(dag);
  Relaxation relaxation(dag, kinds);
  Rounding rounding(dag, kinds, relaxation);
  const Seconds t_min = plan_exact(dag, few_deadlines()).points.back().time;
  const Seconds deadline = t_min + (relaxation.t_star() - t_min) * dice.real(0.001, 1);
  relaxation.lower_deadline(deadline);
  const model::Plan plan = kinds.plan_of(rounding.round(Rounding::kPunctual));
  const testing::Realized realized = testing::realize(dag, plan);
  RC_ASSERT(realized.time <= deadline * (1 + 1e-9));
}

RC_GTEST_PROP(Rounding, ReportsTimeAndEnergyOfItsPlan, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const Kinds kinds = make_kinds(dag);
  Relaxation relaxation(dag, kinds);
  Rounding rounding(dag, kinds, relaxation);
  relaxation.lower_deadline(relaxation.t_star() * dice.real(0.3, 1));
  const model::Plan plan = kinds.plan_of(rounding.round({dice.real(0, 2), dice.real(0, 1), dice.real(0, 1)}));
  const testing::Realized realized = testing::realize(dag, plan);
  const Seconds said = relaxation.seconds(rounding.makespan_ticks());
  RC_ASSERT(said <= realized.time * (1 + 1e-9) && said >= realized.time * (1 - 1e-9));
  RC_ASSERT(std::abs(rounding.effective_energy_j() - realized.effective_energy.value()) <=
            1e-9 * (std::abs(realized.effective_energy.value()) + (dag.total_blocking_power() * said).value()));
}

class ExactFrontierOf : public ::testing::TestWithParam<testing::PublishedCase> {};

TEST_P(ExactFrontierOf, Verifies) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const model::ComputationDag dag = testing::load(data, GetParam());
  const model::Frontier frontier = plan_exact(dag);
  EXPECT_EQ(first_finding(dag, frontier), "");
  EXPECT_GT(frontier.points.size(), 10u);
}

INSTANTIATE_TEST_SUITE_P(Published, ExactFrontierOf, ::testing::ValuesIn(testing::published_cases()),
                         [](const auto& published) { return published.param.name; });

// ---- degenerate pipelines ----

model::Measurement at(int clock_mhz, double time_s, double energy_j) {
  return {Megahertz(clock_mhz), Seconds(time_s), Joules(energy_j), {}, {}, 1};
}

/// A 1F1B pipeline whose stages all have these options.
model::ComputationDag pipeline(int ranks, int microbatches, const std::vector<model::Measurement>& forward,
                               const std::vector<model::Measurement>& backward, double blocking_power_w = 10) {
  model::Profile profile;
  for (int stage = 0; stage < ranks; ++stage) {
    profile.entries.push_back({stage, "forward", forward});
    profile.entries.push_back({stage, "backward", backward});
  }
  profile.accelerators.assign(ranks, 1);
  const Result<model::Schedule> schedule = model::make_schedule("1f1b", {ranks, microbatches, 1});
  Result<model::ComputationDag> dag = model::build_dag(profile, *schedule, {Watts(blocking_power_w), Seconds(0)});
  PERSEUS_CHECK(dag.ok(), "degenerate pipeline");
  return std::move(*dag);
}

const std::vector<model::Measurement> kForward = {at(1400, 1, 300), at(1200, 1.125, 280), at(1000, 1.375, 270)};
const std::vector<model::Measurement> kBackward = {at(1400, 2, 600), at(1200, 2.25, 560), at(1000, 2.75, 540)};

struct Degenerate {
  std::string name;
  model::ComputationDag dag;
  std::size_t points;  ///< how many the frontier must have; 0: any number
};

std::vector<Degenerate> degenerate_cases() {
  const std::vector<model::Measurement> single = {at(1400, 1, 300)};
  const std::vector<model::Measurement> repeated = {at(1400, 1, 300), at(1200, 1, 300), at(1000, 1, 300)};
  // Effective energy 290 J at every clock: waiting saves nothing.
  const std::vector<model::Measurement> flat = {at(1400, 1, 300), at(1200, 2, 310), at(1000, 4, 330)};
  // The highest clock is throttled: slower than the next, and more energy.
  const std::vector<model::Measurement> throttled = {at(1400, 1.25, 350), at(1200, 1, 300), at(1000, 1.5, 250)};
  // Slower and cheaper, and free: an option without energy.
  const std::vector<model::Measurement> free = {at(1400, 1, 1), at(700, 2, 0)};
  // Two options that differ in the tenth digit.
  const std::vector<model::Measurement> twins = {at(1400, 1, 300), at(1200, 1 + 1e-10, 200)};
  return {{"IdenticalStages", pipeline(4, 8, kForward, kBackward), 0},
          {"SingleStage", pipeline(1, 8, kForward, kBackward), 0},
          {"SingleMicrobatch", pipeline(4, 1, kForward, kBackward), 0},
          {"SingleComputationPair", pipeline(1, 1, kForward, kBackward), 0},
          {"FewerMicrobatchesThanStages", pipeline(6, 2, kForward, kBackward), 0},
          {"SingleClock", pipeline(4, 6, single, single), 1},
          {"RepeatedOption", pipeline(4, 6, repeated, repeated), 1},
          {"NoSlope", pipeline(4, 6, flat, flat), 1},
          {"Throttled", pipeline(4, 6, throttled, throttled), 0},
          {"NoBlockingPower", pipeline(4, 6, kForward, kBackward, 0), 0},
          {"HugeBlockingPower", pipeline(4, 6, kForward, kBackward, 1e6), 0},
          {"FreeOption", pipeline(2, 3, free, free, 0), 0},
          {"Twins", pipeline(2, 3, twins, twins), 0},
          {"OneOfManyHasAChoice", pipeline(4, 6, single, kBackward), 0}};
}

class ExactFrontierOfDegenerate : public ::testing::TestWithParam<Degenerate> {};

TEST_P(ExactFrontierOfDegenerate, Verifies) {
  const model::Frontier frontier = plan_exact(GetParam().dag, few_deadlines());
  EXPECT_EQ(first_finding(GetParam().dag, frontier), "");
  if (GetParam().points > 0) { EXPECT_EQ(frontier.points.size(), GetParam().points); }
}

INSTANTIATE_TEST_SUITE_P(All, ExactFrontierOfDegenerate, ::testing::ValuesIn(degenerate_cases()),
                         [](const auto& degenerate) { return degenerate.param.name; });

}  // namespace
}  // namespace perseus::planner
