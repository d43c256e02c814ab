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

struct Saving {
  double least_pct = 100, mean_pct = 0;
};

/// Of the exact planner's plans, against the published method's at their realized times.
Saving saving_against_published(const model::ComputationDag& dag, Seconds tau) {
  const PerseusRun published = plan_perseus(dag, {.unit_time = tau, .progress = {}}).value();
  const model::Frontier frontier = plan_exact(dag);
  Saving saving;
  for (const PerseusStep& step : published.steps()) {
    // The same measurements along the same path may be summed in another order.
    const model::FrontierPoint& ours = point_within(frontier, step.time * (1 + 1e-12));
    const double saved_pct = 100 * ((step.effective_energy - ours.effective_energy) / step.energy);
    saving.least_pct = std::min(saving.least_pct, saved_pct);
    saving.mean_pct += saved_pct / static_cast<double>(published.steps().size());
  }
  return saving;
}

class ExactPlanner : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(ExactPlanner, NeedsNoMoreThanThePublishedMethodAtItsRealizedTimes) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const auto [gpu_index, microbatches] = GetParam();
  const auto gpu = testing::emulated_gpus()[gpu_index];
  const Saving saving = saving_against_published(testing::emulated_dag(data, gpu, microbatches), gpu.unit_time);
  RecordProperty("least_saving_pct", std::to_string(saving.least_pct));
  RecordProperty("mean_saving_pct", std::to_string(saving.mean_pct));
  EXPECT_GE(saving.least_pct, -1e-9);
}

INSTANTIATE_TEST_SUITE_P(A100, ExactPlanner, ::testing::Combine(::testing::Values(0), ::testing::Values(12, 24)));
INSTANTIATE_TEST_SUITE_P(A40, ExactPlanner, ::testing::Combine(::testing::Values(1), ::testing::Values(12, 24)));

// Why only high effort has the published method's plans as candidates: they take longer than the planner.
class ManyMicrobatches : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(ManyMicrobatches, NeedNextToNoMoreThanThePublishedMethod) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const auto [gpu_index, microbatches] = GetParam();
  const auto gpu = testing::emulated_gpus()[gpu_index];
  const Saving saving = saving_against_published(testing::emulated_dag(data, gpu, microbatches), Seconds(0.001));
  EXPECT_GE(saving.least_pct, -0.05);
}

INSTANTIATE_TEST_SUITE_P(A100, ManyMicrobatches, ::testing::Values(std::tuple(0, 96)));
INSTANTIATE_TEST_SUITE_P(A40, ManyMicrobatches, ::testing::Values(std::tuple(1, 48)));

}  // namespace
}  // namespace perseus::planner
