// EnvPipe against its published numbers: 8 stages of GPT-3 175B, both GPUs, every number of microbatches.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "planning/baselines/envpipe.h"
#include "planning/baselines/methods.h"
#include "tests/support/published_envpipe.h"
#include "tests/support/published_frontier.h"
#include "tests/support/shared_data.h"

namespace perseus::baselines {
namespace {

class PublishedEnvPipe : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(PublishedEnvPipe, IsReproduced) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const auto gpu = testing::emulated_gpus()[std::get<0>(GetParam())];
  const int microbatches = std::get<1>(GetParam());
  const auto published = testing::published_envpipe(data, gpu.name, microbatches);
  ASSERT_TRUE(published.has_value()) << "no such row";
  const model::ComputationDag dag = testing::emulated_dag(data, gpu, microbatches);
  for (const Seconds unit : {Seconds(0), Seconds(1e-4)}) {
    const EnvPipeRun run = plan_envpipe(dag, {.max_steps = 10000, .unit_time = unit}).value();
    EXPECT_EQ(run.end, EnvPipeEnd::envelope);
    const model::Frontier judged = judge(dag, {run.plan}, model::LowerBound{{{Seconds(0), Joules(0)}}});
    // The file has milliseconds of ten times the time, and millijoules of eighty times the energy.
    EXPECT_NEAR(10 * judged.points[0].time.value(), published->iteration_time_s, 0.0005001);
    EXPECT_NEAR(80 * judged.points[0].energy.value(), published->energy_j, 0.0005001);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpt3, PublishedEnvPipe,
                         ::testing::Combine(::testing::Values(0, 1), ::testing::Values(12, 24, 48, 96)));

}  // namespace
}  // namespace perseus::baselines
