#include "server/profiling/few_plans.h"

#include <gtest/gtest.h>

#include "planning/model/build_dag.h"
#include "planning/model/make_schedule.h"
#include "planning/planner/exact.h"
#include "planning/planner/look_up.h"
#include "tests/support/simulated_profile.h"

namespace perseus::profiling {
namespace {

/// One rounding a deadline; a whole frontier has splices of many there.
TEST(FewPlans, MeetTheirDeadlinesAndAreNearlyAsGoodAsTheWholeFrontiers) {
  StopCheck never;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const model::Profile profile = testing::invented_profile({.stages = 4}, seed);
    const model::ComputationDag dag =
        model::build_dag(profile, model::make_schedule("1f1b", {4, 12, 1}).value(), {Watts(80), Seconds(0)}).value();
    const model::Frontier whole = planner::plan_exact(dag);
    const Seconds t_min = whole.points.back().time;
    const model::Frontier few = few_plans(dag, {t_min * 1.2, t_min * 1.05}, never);
    EXPECT_EQ(few.points.back().time, t_min);
    EXPECT_LE(few.points.size(), 3U);
    for (const double slowdown : {1.0, 1.05, 1.2}) {
      const model::FrontierPoint &one = planner::look_up(few, t_min * slowdown),
                                 &best = planner::look_up(whole, t_min * slowdown);
      EXPECT_LE(one.time, t_min * slowdown);
      EXPECT_LT(one.effective_energy / best.effective_energy, 1.003) << "seed " << seed << ", " << slowdown;
      EXPECT_NEAR(few.bound.at(t_min * slowdown) / whole.bound.at(t_min * slowdown), 1, 1e-9);
    }
  }
}

TEST(FewPlans, ADeadlinePastTheEndIsTheEnd) {
  StopCheck never;
  const model::Profile profile = testing::invented_profile({}, 1);
  const model::ComputationDag dag =
      model::build_dag(profile, model::make_schedule("1f1b", {3, 6, 1}).value(), {Watts(80), Seconds(0)}).value();
  const model::Frontier whole = planner::plan_exact(dag);
  const model::Frontier few = few_plans(dag, {whole.points.front().time * 9}, never);
  EXPECT_NEAR(few.points.front().effective_energy / whole.points.front().effective_energy, 1, 1e-4);
}

}  // namespace
}  // namespace perseus::profiling
