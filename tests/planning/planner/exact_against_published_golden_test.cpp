// The exact planner against the published method: wherever a published plan is feasible, the exact planner's needs no
// more energy.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "planning/planner/exact.h"
#include "planning/planner/perseus_method.h"
#include "tests/support/published_frontier.h"
#include "tests/support/shared_data.h"

namespace perseus::planner {
namespace {

/// The slowest point that is no slower than `deadline`.
const model::FrontierPoint& point_within(const model::Frontier& frontier, Seconds deadline) {
  const auto point =
      std::ranges::find_if(frontier.points, [deadline](const model::FrontierPoint& p) { return p.time <= deadline; });
  PERSEUS_CHECK(point != frontier.points.end(), "no point is that fast");
  return *point;
}

class ExactPlanner : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(ExactPlanner, NeedsNoMoreThanThePublishedMethodAtItsRealizedTimes) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const auto [gpu_index, microbatches] = GetParam();
  const auto gpu = testing::emulated_gpus()[gpu_index];
  const model::ComputationDag dag = testing::emulated_dag(data, gpu, microbatches);
  const PerseusRun published = plan_perseus(dag, {.unit_time = gpu.unit_time, .progress = {}}).value();
  const model::Frontier frontier = plan_exact(dag);
  ASSERT_FALSE(published.steps().empty());
  double least_saving_pct = 100;
  double mean_saving_pct = 0;
  for (const PerseusStep& step : published.steps()) {
    // The same measurements along the same path may be summed in another order.
    const model::FrontierPoint& ours = point_within(frontier, step.time * (1 + 1e-12));
    const Joules saved = step.effective_energy - ours.effective_energy;
    least_saving_pct = std::min(least_saving_pct, 100 * (saved / step.energy));
    mean_saving_pct += 100 * (saved / step.energy) / static_cast<double>(published.steps().size());
  }
  RecordProperty("least_saving_pct", std::to_string(least_saving_pct));
  RecordProperty("mean_saving_pct", std::to_string(mean_saving_pct));
  EXPECT_GE(least_saving_pct, -1e-9);
}

INSTANTIATE_TEST_SUITE_P(A100, ExactPlanner, ::testing::Combine(::testing::Values(0), ::testing::Values(12, 24)));
INSTANTIATE_TEST_SUITE_P(A40, ExactPlanner, ::testing::Combine(::testing::Values(1), ::testing::Values(12, 24)));

}  // namespace
}  // namespace perseus::planner
