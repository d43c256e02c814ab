// The gap to the bound at the deadlines that jobs run at, on the published profiles: T_max and the usual tolerances.
#include <gtest/gtest.h>

#include <array>

#include "planning/model/default_plan.h"
#include "planning/model/reference_plans.h"
#include "planning/planner/exact.h"
#include "planning/planner/look_up.h"
#include "planning/planner/realize.h"
#include "tests/support/published_frontier.h"
#include "tests/support/shared_data.h"

namespace perseus::planner {
namespace {

/// Gaps in percent at T_max and at the usual tolerances, with 12 microbatches.
std::array<double, 5> gaps_pct(const std::filesystem::path& data, int gpu_index) {
  const model::ComputationDag dag = testing::emulated_dag(data, testing::emulated_gpus()[gpu_index], 12);
  const Seconds t_max = Realizer(dag).realize(model::all_maximum_clock(dag)).time;
  const model::Frontier frontier = plan_exact(dag);
  std::array<double, 5> gaps{};
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const Seconds deadline = t_max * (1 + (i == 0 ? 0 : model::kUsualTolerances[i - 1])) * (1 + 1e-12);
    const Joules bound = frontier.bound.at(deadline);
    gaps[i] = 100 * ((look_up(frontier, deadline).effective_energy - bound) /
                     (bound + dag.total_blocking_power() * deadline));
  }
  return gaps;
}

// Without splices: 0.457, 0.378, 0.511, 0.253, 0.197. Twenty million annealed moves of pairs reach 0.32 at T_max.
TEST(WantedDeadlines, A40IsCloseToItsBound) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const std::array<double, 5> gaps = gaps_pct(data, 1);
  const std::array<double, 5> most = {0.458, 0.375, 0.463, 0.254, 0.195};
  for (std::size_t i = 0; i < gaps.size(); ++i) EXPECT_LE(gaps[i], most[i]) << i;
}

// Without splices: 0.138, 0.146, 0.113, 0.150, 0.119.
TEST(WantedDeadlines, A100IsCloseToItsBound) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const std::array<double, 5> gaps = gaps_pct(data, 0);
  const std::array<double, 5> most = {0.138, 0.147, 0.111, 0.145, 0.111};
  for (std::size_t i = 0; i < gaps.size(); ++i) EXPECT_LE(gaps[i], most[i]) << i;
}

// Plans by prices, annealed, ended up to 0.05 % before these deadlines.
TEST(WantedDeadlines, LateClocksLeaveNoTimeUnused) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const model::ComputationDag dag = testing::emulated_dag(data, testing::emulated_gpus()[0], 4);
  const Seconds t_max = Realizer(dag).realize(model::all_maximum_clock(dag)).time;
  PlannerOptions options;
  options.effort = Effort::low;
  options.deadlines = 50;
  options.switch_latency = Seconds(0.003);
  const model::Frontier frontier = plan_exact(dag, options);
  for (const double tolerance : model::kUsualTolerances) {
    const Seconds deadline = (1 + tolerance) * t_max;
    EXPECT_GE(look_up(frontier, deadline).time, (1 - 1e-4) * deadline) << tolerance;
  }
}

}  // namespace
}  // namespace perseus::planner
