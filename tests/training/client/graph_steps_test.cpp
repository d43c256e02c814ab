// Which steps without computations are iterations.
#include "training/client/graph_steps.h"

#include <gtest/gtest.h>

namespace perseus::client {
namespace {

Step step_of(double took_s, bool ran, bool with_work = false) {
  Step step;
  step.cuda = true;
  step.ran = ran;
  step.end_mark = static_cast<std::uint64_t>(took_s * 1e9);
  if (with_work) step.computations.push_back({0, step.end_mark});
  step.count = step.computations.size();
  return step;
}

TEST(GraphSteps, AStepIsAnIterationIfItTakesAQuarterOfOneThatShowsItsComputations) {
  GraphSteps graphs;
  EXPECT_FALSE(graphs.seems_run(0.0009, false)) << "no other step is known";
  EXPECT_TRUE(graphs.seems_run(0.0011, false));
  EXPECT_TRUE(graphs.ran(step_of(0.1, true, true)));
  EXPECT_FALSE(graphs.seems_run(0.024, false));
  EXPECT_TRUE(graphs.seems_run(0.026, false));
}

TEST(GraphSteps, AFirstIterationThatTookFarLongerIsForgotten) {
  for (const bool cuda : {true, false}) {
    GraphSteps graphs;
    EXPECT_TRUE(graphs.ran(step_of(10, true, true))) << "it compiles its kernels";
    Step graph = step_of(0.5, false);
    graph.cuda = cuda;
    for (int replay = 0; replay < 16; ++replay) {
      EXPECT_FALSE(graphs.seems_run(0.5, cuda));
      EXPECT_FALSE(graphs.ran(graph));
    }
    EXPECT_TRUE(graphs.seems_run(0.5, cuda));
    graph.ran = true;
    EXPECT_TRUE(graphs.ran(graph));
    EXPECT_FALSE(graphs.seems_run(2e-5, false));
  }
}

TEST(GraphSteps, SkippedBatchesBetweenIterationsAreNeverGraphs) {
  GraphSteps graphs;
  for (int iteration = 0; iteration < 10; ++iteration) {
    EXPECT_TRUE(graphs.ran(step_of(0.1, true, true)));
    for (int skipped = 0; skipped < 5; ++skipped) {
      EXPECT_FALSE(graphs.seems_run(0.002, false));
      EXPECT_FALSE(graphs.ran(step_of(0.002, false)));
    }
  }
}

TEST(GraphSteps, AGraphThatTheDeviceReplaysLaterIsRecognized) {
  GraphSteps graphs;
  EXPECT_TRUE(graphs.ran(step_of(0.1, true, true)));
  const double launch_s = 2e-5;
  EXPECT_FALSE(graphs.seems_run(launch_s, true));
  EXPECT_FALSE(graphs.ran(step_of(0.09, false))) << "it was taken for one in which nothing ran";
  EXPECT_TRUE(graphs.seems_run(launch_s, true));
  EXPECT_FALSE(graphs.seems_run(launch_s, false)) << "the host has waited for it";
  EXPECT_TRUE(graphs.ran(step_of(0.09, true)));
  EXPECT_FALSE(graphs.ran(step_of(1e-6, true))) << "a skipped batch between graphs";
  EXPECT_FALSE(graphs.seems_run(launch_s, true));
}

}  // namespace
}  // namespace perseus::client
