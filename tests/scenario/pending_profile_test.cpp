// A store commits one append of a job after the other: what waits for its turn is in memory, and nowhere else.
#include <gtest/gtest.h>

#include <optional>

#include "scenario/in_process.h"

namespace perseus::testing {
namespace {

constexpr const char* kTwoStages =
    "stage,instruction,frequency,time,energy\n"
    "0,forward,1400,0.1,40\n0,forward,700,0.2,30\n0,backward,1400,0.2,80\n0,backward,700,0.4,60\n"
    "1,forward,1400,0.1,40\n1,forward,700,0.2,30\n1,backward,1400,0.2,80\n1,backward,700,0.4,60\n";

TEST(PendingProfile, IsPlannedWhenTheStoreHasIt) {
  InProcess target;
  server::RegisterJob two_stages;
  two_stages.degrees.pp = 2;
  const auto job = target.register_job(two_stages);
  ASSERT_TRUE(job.ok());
  server::NamedProfile profile;
  profile.profile_csv = kTwoStages;
  profile.shape.microbatches = 2;
  profile.shape.blocking_power = Watts(70);
  std::optional<Status> uploaded;
  target.service().upload_profile(job->job, profile, {}, [&](const Result<Ok>& done) { uploaded = done; });
  // Its append is under way when the profile, parsed meanwhile, must wait for it.
  server::RegisterRank rank;
  rank.job = job->job;
  target.service().register_rank(rank, [](const auto&) {});
  target.settle();
  ASSERT_TRUE(uploaded && uploaded->ok());
  const auto view = target.job(job->job);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->row.state, "deployed") << view->reason;
}

}  // namespace
}  // namespace perseus::testing
