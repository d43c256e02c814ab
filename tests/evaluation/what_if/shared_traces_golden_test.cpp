// Two production jobs with the published answers of a what-if analysis ("Understanding Stragglers in Large Model
// Training Using What-if Analysis", OSDI 2025).
#include <gtest/gtest.h>

#include <cmath>

#include "evaluation/what_if/replay_step.h"
#include "evaluation/what_if/slowdown_causes.h"
#include "io/trace/read_trace.h"
#include "server/policies/straggler_detector.h"
#include "tests/support/shared_data.h"

namespace perseus::what_if {
namespace {

TracedJob job_of(const std::filesystem::path& data, const std::string& name) {
  return understand(trace::read_trace({data / "traces" / ("timeline-" + name + ".json.gz")}, {}).value()).value();
}

/// The server's detector on the times of the job's pipelines: the step at which it first finds each straggler, or -1.
std::vector<int> detected(const TracedJob& job) {
  policies::StragglerDetector detector(job.pipelines);
  std::vector<int> found(job.pipelines, -1);
  for (int s = 0; s < static_cast<int>(job.steps.size()); ++s) {
    for (int d = 0; d < job.pipelines; ++d) {
      const auto degree = detector.report(d, measured_span(job.steps[s].pipelines[d]));
      if (degree && *degree > 1 && found[d] < 0) found[d] = s;
    }
  }
  return found;
}

TEST(SharedTraces, OneSlowWorkerExplainsAr) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const TracedJob job = job_of(data, "AR");
  EXPECT_EQ(job.pipelines, 4);
  EXPECT_EQ(job.ranks, 4);
  EXPECT_EQ(job.microbatches, 32);
  EXPECT_EQ(job.steps.size(), 44U);
  EXPECT_EQ(job.incomplete_steps, 0);
  EXPECT_EQ(job.orders.size(), 1U);
  EXPECT_EQ(job.schedule().name, "1f1b");
  const ReplayErrors errors = replay_errors(job);
  EXPECT_LT(errors.with_links, 0.001);
  EXPECT_LT(errors.computing_alone, 0.0025);
  const Slowdown slowdown = explain(job);
  EXPECT_NEAR(slowdown.as_run_s, 46.336, 0.003 * 46.336);
  EXPECT_NEAR(slowdown.ideal_s, 23.485, 0.001 * 23.485);
  ASSERT_EQ(slowdown.causes.size(), 1U);
  EXPECT_EQ(slowdown.causes.front().kind, CauseKind::worker);
  EXPECT_EQ(slowdown.causes.front().worker, (TracedWorker{0, 0}));
  EXPECT_NEAR(slowdown.causes.front().share, 1, 0.02);
  const auto found = detected(job);
  EXPECT_GE(found[0], 0);
  EXPECT_LT(found[0], 10);
  for (int d = 1; d < job.pipelines; ++d) EXPECT_EQ(found[d], -1);
}

TEST(SharedTraces, TheLastStageExplainsSt) {
  PERSEUS_NEEDS_SHARED_DATA(data);
  const TracedJob job = job_of(data, "ST");
  EXPECT_EQ(job.pipelines, 2);
  EXPECT_EQ(job.schedule().name, "1f1b");
  EXPECT_EQ(job.steps.size(), 32U);
  const ReplayErrors errors = replay_errors(job);
  EXPECT_LT(errors.with_links, 0.001);
  EXPECT_NEAR(errors.computing_alone, 0.002516, 1e-6);  // the data says -0.25 %: rounded
  const Slowdown slowdown = explain(job);
  EXPECT_NEAR(slowdown.as_run_s, 2.1727, 0.003 * 2.1727);
  EXPECT_NEAR(slowdown.ideal_s, 1.8433, 0.002 * 1.8433);
  ASSERT_FALSE(slowdown.causes.empty());
  EXPECT_EQ(slowdown.causes.front().kind, CauseKind::stage);
  EXPECT_EQ(slowdown.causes.front().stage, 3);
  EXPECT_NEAR(slowdown.causes.front().share, 1.219, 0.02);
  for (const SlowdownCause& cause : slowdown.causes) EXPECT_NE(cause.kind, CauseKind::worker);
  for (const int found : detected(job)) EXPECT_EQ(found, -1);
}

}  // namespace
}  // namespace perseus::what_if
