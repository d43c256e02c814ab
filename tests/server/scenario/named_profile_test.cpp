// Pipeline properties of a named profile apply to jobs that do not set them.
#include <gtest/gtest.h>

#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/two_stages.h"

namespace perseus::testing {
namespace {

struct NamedProfileTest : ::testing::Test {
  NamedProfileTest() {
    jobs::NamedProfile profile;
    profile.name = "two-nodes";
    profile.profile_csv = kTwoStages;
    profile.shape.microbatches = 2;
    profile.shape.blocking_power = Watts(70);
    profile.shape.transfer_latency = Seconds(0.5);
    profile.shape.blocking_transfers = true;
    EXPECT_TRUE(target.put_profile(profile).ok());
  }
  double t_min_s(const std::optional<jobs::PipelineShape>& shape) {
    jobs::RegisterJob request;
    request.degrees.pp = 2;
    request.profile = "two-nodes";
    request.shape = shape;
    const auto job = target.register_job(request);
    EXPECT_TRUE(job.ok()) << job.error().message;
    return target.job(job->job)->plan->t_min->value();
  }

  InProcess target;
};

TEST_F(NamedProfileTest, KeepsItsLinksForAJobThatNamesItsScheduleOnly) {
  // F0 0.1, sent 0.5, F1 0.1, B1 0.2, sent 0.5, ...: with links of 0.5 s no plan takes less than 1.6 s.
  const double own_s = t_min_s(std::nullopt);
  EXPECT_GT(own_s, 1.6);
  jobs::PipelineShape shape;  // as the client sends it
  shape.microbatches = 2;
  EXPECT_EQ(t_min_s(shape), own_s);
}

TEST_F(NamedProfileTest, GivesWayToAJobThatNamesItsLinks) {
  jobs::PipelineShape shape;
  shape.microbatches = 2;
  shape.transfer_latency = Seconds(0);
  EXPECT_NEAR(t_min_s(shape), 0.9, 1e-9);
}

TEST_F(NamedProfileTest, LetsTransfersQueueWhereTheJobSaysSo) {
  // The second forward is sent at 0.2 s and arrives at 0.7 s, or, after the first, at 1.1 s.
  jobs::PipelineShape shape;
  shape.microbatches = 2;
  shape.transfer_latency = Seconds(0.5);
  EXPECT_NEAR(t_min_s(shape), 1.9, 1e-9);
  shape.serial_transfers = true;
  EXPECT_NEAR(t_min_s(shape), 2.1, 1e-9);
}

}  // namespace
}  // namespace perseus::testing
