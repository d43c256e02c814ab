// The exact planner's lower bound against a linear program, brute force, and its own certificates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "oracles/brute_force.h"
#include "oracles/curves.h"
#include "oracles/dice.h"
#include "oracles/instances.h"
#include "oracles/lp_oracle.h"
#include "oracles/published.h"
#include "oracles/rapidcheck_assert.h"
#include "planning/checker/certificate_check.h"
#include "planning/planner/choices.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"
#include "planning/planner/relaxation.h"
#include "tests/support/shared_data.h"

namespace perseus::planner {
namespace {

using testing::BruteForce;
using testing::Realized;
using testing::ShrinkingDice;

constexpr testing::InstanceLimits kTiny{3, 3, 4, 3000};
constexpr testing::CurveTolerance kOfTheSolver{1e-8, 1e-6};

::testing::AssertionResult agrees_with_linear_program(const model::ComputationDag& dag, int num_deadlines) {
  const model::LowerBound bound = compute_lower_bound(dag).bound;
  for (const Seconds deadline : testing::sample_deadlines(bound, num_deadlines)) {
    // At T_min itself, the solver's rounding must not decide whether there is a plan.
    const auto optimum = testing::solve_relaxation(dag, deadline * (1 + 1e-10));
    if (!optimum) return ::testing::AssertionFailure() << "no plan within " << deadline.value() << " s";
    auto result = testing::lies_on(bound, dag, deadline, optimum->effective_energy, kOfTheSolver);
    if (!result) return result;
  }
  if (testing::solve_relaxation(dag, bound.t_min() * (1 - 1e-6)))
    return ::testing::AssertionFailure() << "there is a plan faster than T_min " << bound.t_min().value() << " s";
  return ::testing::AssertionSuccess();
}

/// The curve with certificates inside every piece, and outside.
::testing::AssertionResult proves_itself(const model::ComputationDag& dag) {
  const model::LowerBound bound = compute_lower_bound(dag).bound;
  std::vector<Seconds> deadlines = checker::deadlines_to_certify(bound);
  deadlines.push_back(bound.t_star() * 1.1);
  deadlines.push_back(bound.t_min());
  LowerBoundResult result = compute_lower_bound(dag, deadlines);
  if (result.certificates.size() != deadlines.size()) return ::testing::AssertionFailure() << "certificates missing";
  // Each must be optimal at the requested deadline if it claims to be.
  for (std::size_t i = 0; i < deadlines.size(); ++i) result.certificates[i].deadline = deadlines[i];
  const checker::BoundCheck check = checker::check_bound(dag, bound, result.certificates);
  if (!check.findings.empty()) return ::testing::AssertionFailure() << check.findings[0];
  const double end = (bound.vertices.back().effective_energy - checker::least_effective_energy(dag)).value();
  if (std::abs(end) >
      1e-9 * (checker::least_effective_energy(dag) + dag.total_blocking_power() * bound.t_star()).value())
    return ::testing::AssertionFailure() << "the curve does not end at the least effective energy";
  return ::testing::AssertionSuccess();
}

RC_GTEST_PROP(LowerBound, AgreesWithTheLinearProgram, ()) {
  ShrinkingDice dice;
  RC_ASSERT_THAT(agrees_with_linear_program(testing::random_dag(dice), 5));
}

RC_GTEST_PROP(LowerBound, ProvesItself, ()) {
  ShrinkingDice dice;
  RC_ASSERT_THAT(proves_itself(testing::random_dag(dice)));
}

RC_GTEST_PROP(LowerBound, IsBelowBruteForceAndStartsAtItsFastest, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice, kTiny);
  const model::LowerBound bound = compute_lower_bound(dag).bound;
  const BruteForce brute_force(dag);
  const Seconds fastest = brute_force.pareto_set().front().time;
  RC_ASSERT(std::abs(bound.t_min() / fastest - 1) <= 1e-9);
  for (const Realized& best : brute_force.pareto_set()) {
    const double total = (best.effective_energy + dag.total_blocking_power() * best.time).value();
    const Joules claimed = bound.at(best.time * (1 + 1e-9));
    RC_ASSERT((claimed - best.effective_energy).value() <= 1e-9 * total);
  }
}

// With prices in steps: below the exact curve by no more than a step for all time, with the same ends, and proven.
RC_GTEST_PROP(LowerBound, OfPricesInStepsProvesItself, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const Kinds kinds = make_kinds(dag);
  const model::LowerBound exact = compute_lower_bound(dag).bound;
  const Joules total = exact.vertices.back().effective_energy + dag.total_blocking_power() * exact.t_star();
  const Watts step = (total / exact.t_star()) * (1.0 / dice.roll(1, 1000));
  Relaxation whole(dag, kinds, step);
  whole.lower_deadline(Seconds(0));
  const model::LowerBound bound = whole.curve();
  RC_ASSERT(std::abs(bound.t_min() / exact.t_min() - 1) <= 1e-9);
  RC_ASSERT(std::abs(bound.t_star() / exact.t_star() - 1) <= 1e-9);
  Seconds busy;
  for (int i = 0; i < static_cast<int>(dag.computations.size()); ++i) {
    busy += std::ranges::max(dag.type_of(i).options, {}, &model::Measurement::time).time;
  }
  Relaxation relaxation(dag, kinds, step);
  std::vector<model::BoundCertificate> certificates;
  std::vector<Seconds> falling = checker::deadlines_to_certify(bound);
  std::ranges::reverse(falling);
  for (const Seconds deadline : falling) {
    const Joules loss = exact.at(deadline) - bound.at(deadline);
    RC_ASSERT(loss >= -1e-9 * total);
    RC_ASSERT(loss <= step * (busy + exact.t_star()) + 1e-9 * total);
    relaxation.lower_deadline(whole.proven_at(deadline));
    certificates.push_back(relaxation.certificate());
    certificates.back().deadline = deadline;
  }
  const checker::BoundCheck check = checker::check_bound(dag, bound, certificates);
  RC_ASSERT((check.findings.empty() ? "" : check.findings[0]) == "");
}

class LowerBoundOf : public ::testing::TestWithParam<testing::PublishedCase> {};

TEST_P(LowerBoundOf, AgreesWithTheLinearProgram) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  EXPECT_TRUE(agrees_with_linear_program(testing::load(data, GetParam()), 4));
}

TEST_P(LowerBoundOf, ProvesItself) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  EXPECT_TRUE(proves_itself(testing::load(data, GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Published, LowerBoundOf, ::testing::ValuesIn(testing::published_cases()),
                         [](const auto& published) { return published.param.name; });

}  // namespace
}  // namespace perseus::planner
