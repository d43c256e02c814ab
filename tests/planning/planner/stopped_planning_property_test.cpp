// Canceled planning ends at once; a cancellation check that never cancels does not change the frontier.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "oracles/dice.h"
#include "oracles/instances.h"
#include "planning/checker/verify_plan.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"
#include "planning/planner/quick.h"

namespace perseus::planner {
namespace {

using testing::ShrinkingDice;

constexpr long kOften = 500;  // operations between two cancellation checks: these DAGs are small

PlannerOptions random_options(ShrinkingDice& dice) {
  PlannerOptions options;
  options.deadlines = 30;
  options.effort = std::array{Effort::low, Effort::normal, Effort::high}[dice.roll(0, 2)];
  if (dice.roll(0, 1) == 1) options.switch_latency = Seconds(0.01);
  if (dice.roll(0, 1) == 1) options.min_dwell = Seconds(0.05);
  return options;
}

bool same(const model::Frontier& a, const model::Frontier& b) {
  if (a.points.size() != b.points.size() || a.bound.vertices.size() != b.bound.vertices.size()) return false;
  for (std::size_t i = 0; i < a.points.size(); ++i) {
    const model::FrontierPoint &p = a.points[i], &q = b.points[i];
    if (p.time != q.time || p.energy != q.energy || p.bound != q.bound || p.plan != q.plan) return false;
  }
  for (std::size_t i = 0; i < a.bound.vertices.size(); ++i) {
    const model::BoundVertex &v = a.bound.vertices[i], &w = b.bound.vertices[i];
    if (v.time != w.time || v.effective_energy != w.effective_energy) return false;
  }
  return true;
}

RC_GTEST_PROP(StoppedPlanning, EndsAtOnceAndOtherwiseChangesNothing, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  const PlannerOptions options = random_options(dice);
  const model::Frontier whole = plan_exact(dag, options);
  const bool quick = dice.roll(0, 3) == 0;
  int asked = 0;
  StopCheck counting([&] { return ++asked, false; }, kOften);
  const auto plan = [&](StopCheck& check) {
    return quick ? plan_quick(dag, options, check) : plan_exact(dag, options, check);
  };
  const auto not_stopped = plan(counting);
  RC_ASSERT(not_stopped.ok());
  if (!quick) RC_ASSERT(same(*not_stopped, whole));
  RC_ASSERT(asked >= 1);
  const int stop_at = dice.roll(1, asked);
  int asked_again = 0;
  StopCheck stopping([&] { return ++asked_again >= stop_at; }, kOften);
  const auto stopped = plan(stopping);
  RC_ASSERT(!stopped.ok());
  RC_ASSERT(stopped.error().code == ErrorCode::unavailable);
  RC_ASSERT(asked_again == stop_at);  // no further check after the cancellation
}

RC_GTEST_PROP(StoppedPlanning, QuickFrontiersVerify, ()) {
  ShrinkingDice dice;
  const model::ComputationDag dag = testing::random_dag(dice);
  PlannerOptions options = random_options(dice);
  options.effort = Effort::normal;
  StopCheck never;
  const auto quick = plan_quick(dag, options, never);
  RC_ASSERT(quick.ok() && !quick->points.empty());
  checker::VerifyOptions verify;
  verify.switch_latency = options.switch_latency;
  verify.reaches_both_ends = false;
  model::Frontier claimed = *quick;
  claimed.bound.vertices.clear();
  const checker::Verification v = checker::verify_frontier(dag, claimed, {}, verify);
  RC_ASSERT((v.ok() ? "" : v.findings[0].message) == "");
  const model::LowerBound tight = compute_lower_bound(dag).bound;
  for (const model::FrontierPoint& point : quick->points) {
    const Joules blocking = dag.total_blocking_power() * point.time;
    RC_ASSERT(point.bound <= tight.at(point.time) + blocking + 1e-9 * point.energy);
    RC_ASSERT(point.bound <= point.energy);
  }
  const bool limited = options.switch_latency > Seconds(0) || options.min_dwell > Seconds(0);
  if (!limited) RC_ASSERT(quick->points.back().time <= tight.t_min() * (1 + 1e-9));
}

}  // namespace
}  // namespace perseus::planner
