// The published method against its published frontiers. All eight: bench/paper_method_report.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "planning/checker/verify_plan.h"
#include "planning/planner/exact.h"
#include "planning/planner/lower_bound.h"
#include "planning/planner/perseus_method.h"
#include "tests/support/published_frontier.h"
#include "tests/support/shared_data.h"

namespace perseus::planner {
namespace {

class PublishedFrontier : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(PublishedFrontier, IsReproduced) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const auto [gpu_index, microbatches] = GetParam();
  const auto gpu = testing::emulated_gpus()[gpu_index];
  const auto published = testing::published_frontier(data, gpu, microbatches);
  const model::ComputationDag dag = testing::emulated_dag(data, gpu, microbatches);
  const PerseusRun run = plan_perseus(dag, {.unit_time = gpu.unit_time, .progress = {}}).value();

  // The published list begins after the first step.
  ASSERT_EQ(run.steps().size(), published.size() + 1);
  double worst_pct = 0;
  for (std::size_t k = 0; k < published.size(); ++k) {
    const PerseusStep& step = run.steps()[k + 1];
    ASSERT_EQ(std::llround(step.planned_time / gpu.unit_time), std::llround(published[k].planned_time / gpu.unit_time));
    worst_pct = std::max(worst_pct, 100 * std::abs(step.planned_energy / published[k].energy - 1));
  }
  RecordProperty("worst_pct", std::to_string(worst_pct));
  EXPECT_LT(worst_pct, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(A100, PublishedFrontier,
                         ::testing::Combine(::testing::Values(0), ::testing::Values(12, 24, 48)));
INSTANTIATE_TEST_SUITE_P(A40, PublishedFrontier, ::testing::Combine(::testing::Values(1), ::testing::Values(12, 24)));

// Realized, the published plans match an independent simulation, and respect the lower bound.
TEST(PublishedPlans, AreVerifiedOnceRealized) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const auto gpu = testing::emulated_gpus()[0];
  const model::ComputationDag dag = testing::emulated_dag(data, gpu, 12);
  model::Frontier frontier = plan_perseus(dag, {.unit_time = gpu.unit_time, .progress = {}}).value().frontier();
  frontier.bound = compute_lower_bound(dag).bound;
  for (model::FrontierPoint& point : frontier.points) {
    point.bound = frontier.bound.at(point.time) + dag.total_blocking_power() * point.time;
  }
  checker::VerifyOptions options;
  options.reaches_both_ends = false;
  const checker::Verification verification = checker::verify_frontier(dag, frontier, {}, options);
  for (const checker::Finding& finding : verification.findings) ADD_FAILURE() << finding.message;
  EXPECT_GT(verification.points, 500);
  // Known deficiency: the fastest point is slower than everything at the highest clock.
  EXPECT_GT(verification.fastest_time, verification.max_clock_makespan);
}

}  // namespace
}  // namespace perseus::planner
