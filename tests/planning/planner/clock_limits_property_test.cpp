// Plans for slow clock changes: the independent runner confirms their values, and they keep their limits.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "oracles/dice.h"
#include "oracles/instances.h"
#include "oracles/rapidcheck_assert.h"
#include "planning/checker/clock_changes.h"
#include "planning/checker/plan_run.h"
#include "planning/checker/verify_plan.h"
#include "planning/planner/exact.h"
#include "planning/planner/look_up.h"

namespace perseus::checker {
namespace {

struct Limited {
  model::ComputationDag dag;
  planner::PlannerOptions options;
  model::Frontier frontier;
};

// Limits of the order of a computation: from a hundredth of an iteration to all of it.
Limited random_limited(bool late, bool dwell) {
  testing::ShrinkingDice dice;
  Limited limited{testing::random_dag(dice), {}, {}};
  limited.options.deadlines = 12;
  const Seconds iteration = run_plan(limited.dag, model::Plan(limited.dag.computations.size(), 0)).makespan;
  if (late) limited.options.switch_latency = iteration * dice.real(0.001, 0.3);
  if (dwell) limited.options.min_dwell = iteration * dice.real(0.01, 1.5);
  limited.frontier = planner::plan_exact(limited.dag, limited.options);
  return limited;
}

void check(const Limited& limited) {
  VerifyOptions options;
  options.switch_latency = limited.options.switch_latency;
  options.reaches_both_ends = false;
  const Verification verification = verify_frontier(limited.dag, limited.frontier, {}, options);
  if (!verification.ok()) RC_FAIL(verification.findings.front().message);
}

RC_GTEST_PROP(ClockLimits, LateClocksAgreeWithThePlanRun, ()) { check(random_limited(true, false)); }

RC_GTEST_PROP(ClockLimits, PlansDwellAtLeastTheLimitAndTheLatency, ()) {
  const bool late = *rc::gen::arbitrary<bool>();
  const Limited limited = random_limited(late, !late || *rc::gen::arbitrary<bool>());
  const Seconds least = std::max(limited.options.min_dwell, 1.1 * limited.options.switch_latency);
  check(limited);
  PlanRunner runner(limited.dag);
  for (const model::FrontierPoint& point : limited.frontier.points) {
    const PlanRun run = runner.run(point.plan, {limited.options.switch_latency});
    const std::vector<ClockChanges> changes = count_clock_changes(limited.dag, point.plan, run);
    for (int rank = 0; rank < limited.dag.num_ranks(); ++rank) {
      if (changes[rank].count == 0) continue;
      // Only types that have no measured clock in common may change faster.
      std::vector<Megahertz> common;
      bool first = true;
      for (const int i : limited.dag.rank_order[rank]) {
        std::vector<Megahertz> clocks;
        for (const model::Measurement& m : limited.dag.type_of(i).options) {
          if (m.clock != Megahertz(0) && (first || std::ranges::find(common, m.clock) != common.end())) {
            clocks.push_back(m.clock);
          }
        }
        if (limited.dag.type_of(i).options.front().clock == Megahertz(0)) continue;
        common = clocks;
        first = false;
      }
      if (common.empty()) continue;
      RC_ASSERT(changes[rank].shortest_dwell >= least * (1 - 1e-9));
    }
  }
}

RC_GTEST_PROP(ClockLimits, NeverBeatTheBound, ()) {
  // A computation whose clock arrives midway is a mix of two of its options, which the relaxation allows.
  const Limited limited = random_limited(true, *rc::gen::arbitrary<bool>());
  for (const model::FrontierPoint& point : limited.frontier.points) {
    const Joules bound = limited.frontier.bound.at(point.time);
    const double scale = std::abs(bound.value()) + std::abs(point.energy.value());
    RC_ASSERT(point.effective_energy.value() >= bound.value() - 1e-9 * scale);
  }
}

RC_GTEST_PROP(ClockLimits, AnyPlanMayStayAtMaximumClock, ()) {
  // No plan is slower than all computations at their highest clock, the plan without a clock change.
  const Limited limited = random_limited(true, true);
  const Seconds max_clock =
      run_plan(limited.dag, model::Plan(limited.dag.computations.size(), 0), {limited.options.switch_latency}).makespan;
  RC_ASSERT(limited.frontier.points.back().time <= max_clock * (1 + 1e-9));
}

}  // namespace
}  // namespace perseus::checker
