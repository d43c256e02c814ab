// Plans of a job whose number of microbatches changes are those of jobs that always had it.
#include <gtest/gtest.h>

#include <string>

#include "tests/server/scenario/in_process.h"
#include "tests/server/scenario/two_stages.h"

namespace perseus::testing {
namespace {

struct StepShapesTest : ::testing::Test {
  std::string job(int microbatches) {
    jobs::NamedProfile profile;
    profile.name = "with-" + std::to_string(microbatches);
    profile.profile_csv = kTwoStages;
    profile.shape.microbatches = microbatches;
    profile.shape.blocking_power = Watts(70);
    EXPECT_TRUE(target.put_profile(profile).ok());
    jobs::RegisterJob request;
    request.degrees.pp = 2;
    request.profile = profile.name;
    const auto registered = target.register_job(request);
    EXPECT_TRUE(registered.ok());
    for (int rank = 0; rank < 2; ++rank)
      EXPECT_TRUE(target.register_rank(rank_of(registered->job, request.degrees, rank)).ok());
    return registered->job;
  }

  InProcess target;
};

TEST_F(StepShapesTest, ARampSavesAsMuchAsEachStaticPlan) {
  const std::string ramp = job(4);
  for (const int microbatches : {4, 8, 16}) {
    jobs::SeeShape seen;
    seen.job = ramp;
    seen.microbatches = microbatches;
    seen.prevails = true;
    ASSERT_TRUE(target.see_shape(seen).ok());
    const auto own = target.job(ramp), fixed = target.job(job(microbatches));
    ASSERT_TRUE(own->per_iteration && fixed->per_iteration);
    EXPECT_EQ(own->microbatches, microbatches);
    EXPECT_DOUBLE_EQ(own->per_iteration->saved_pct(), fixed->per_iteration->saved_pct());
    EXPECT_EQ(own->pipelines[0].frontier, fixed->pipelines[0].frontier) << "planned once for both";
  }
}

TEST_F(StepShapesTest, AnActionTableIsNeededOfEachShape) {
  jobs::NamedProfile profile;
  profile.name = "table";
  profile.profile_csv = kTwoStages;
  profile.shape.action_table = "0F0,0B0\n1F0,1B0\n";
  ASSERT_TRUE(target.put_profile(profile).ok());
  jobs::RegisterJob request;
  request.degrees.pp = 2;
  request.profile = "table";
  const std::string id = target.register_job(request)->job;
  ASSERT_TRUE(target.register_rank(rank_of(id, request.degrees, 0)).ok());
  jobs::SeeShape seen;
  seen.job = id;
  seen.microbatches = 2;
  ASSERT_TRUE(target.see_shape(seen).ok());
  ASSERT_EQ(target.job(id)->shapes.size(), 2U);
  EXPECT_FALSE(target.job(id)->shapes[1].planned);
  EXPECT_EQ(target.job(id)->shapes[1].why, "the job runs an action table, and there is none of 2 microbatches");
  seen.action_table = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  ASSERT_TRUE(target.see_shape(seen).ok());
  EXPECT_TRUE(target.job(id)->shapes[1].planned) << target.job(id)->shapes[1].why;
}

}  // namespace
}  // namespace perseus::testing
