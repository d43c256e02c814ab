// A store commits the appends of a job one after another: an append that waits for its turn exists in memory only.
#include <gtest/gtest.h>

#include <optional>

#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/two_stages.h"

namespace perseus::testing {
namespace {

TEST(PendingProfile, IsPlannedWhenTheStoreHasIt) {
  InProcess target;
  jobs::RegisterJob two_stages;
  two_stages.degrees.pp = 2;
  const auto job = target.register_job(two_stages);
  ASSERT_TRUE(job.ok());
  jobs::NamedProfile profile;
  profile.profile_csv = kTwoStages;
  profile.shape.microbatches = 2;
  profile.shape.blocking_power = Watts(70);
  std::optional<Status> uploaded;
  target.service().uploads.upload(job->job, profile, {}, [&](const Result<Ok>& done) { uploaded = done; });
  // Its append is in progress, so the profile, parsed meanwhile, must wait for it.
  jobs::RegisterRank rank;
  rank.job = job->job;
  target.service().registrations.register_rank(rank, [](const auto&) {});
  target.settle();
  ASSERT_TRUE(uploaded && uploaded->ok());
  const auto view = target.job(job->job);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->header.state, "deployed") << view->reason;
}

}  // namespace
}  // namespace perseus::testing
