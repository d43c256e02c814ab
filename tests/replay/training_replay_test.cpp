// The launcher of workers, with a program in their place that ends at once, in order.
#include "replay/training_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracles/instances.h"

namespace perseus::testing {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<TrainingReplay> launch_what_ends_at_once() {
  SeededDice dice(3);
  const ComputationDag dag = random_pipeline(dice, "1f1b", {.max_ranks = 2, .max_microbatches = 2});
  ReplayOptions options;
  options.program = "/bin/true";
  options.gpus.assign(dag.num_ranks(), "none");
  options.report_limit_s = 0.3;
  return *TrainingReplay::launch(dag, options);
}

TEST(TrainingReplay, AWorkerThatEndsUntoldIsNamed) {
  const auto iteration = launch_what_ends_at_once()->next_iteration();
  ASSERT_FALSE(iteration);
  EXPECT_THAT(iteration.error().message, HasSubstr("ended with exit code 0"));
}

// On a busy machine some have ended before the last report of others has come.
TEST(TrainingReplay, AWorkerThatEndsOnceItWasToldToIsNotMissed) {
  const auto replay = launch_what_ends_at_once();
  (void)replay->command("stop");
  const auto iteration = replay->next_iteration();
  ASSERT_FALSE(iteration);
  EXPECT_THAT(iteration.error().message, HasSubstr("has not ended within")) << "reports were waited for";
  EXPECT_TRUE(replay->finish(30));
}

}  // namespace
}  // namespace perseus::testing
