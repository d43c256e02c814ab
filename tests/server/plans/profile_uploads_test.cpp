// Profiles uploaded to a running job.
#include "server/plans/profile_uploads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::plans {
namespace {

using ::testing::HasSubstr;
using testing::kTwoStages;
using ::testing::StartsWith;

class ProfileUploadsTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  ProfileUploadsTest() { base.create("job"); }
  Result<Ok> upload(const std::string& csv, std::vector<int> pipelines = {}, const std::string& to = "job",
                    std::optional<Seconds> switch_latency = std::nullopt) {
    jobs::NamedProfile profile{"", csv, {}, ""};
    profile.shape.microbatches = 2;
    profile.shape.switch_latency = switch_latency;
    return answer_of<Ok>([&](auto done) { uploads->upload(to, profile, std::move(pipelines), done, "alice"); });
  }

  std::shared_ptr<ProfileUploads> uploads =
      std::make_shared<ProfileUploads>(options, base.jobs(), access, static_cast<work::Executor&>(base));
};

TEST_F(ProfileUploadsTest, MeasuredLatencyCompletesAProfileWithoutOne) {
  jobs::RankMeasured measured;
  measured.switch_latency_s = 0.0123;
  base.append("job", {measured});
  ASSERT_TRUE(upload(kTwoStages).ok());
  EXPECT_EQ(job().planned_with.at(job().input_of[0]),
            (jobs::Job::Planned{profiles::rounded_latency(Seconds(0.0123)).value(), false}));
  ASSERT_TRUE(upload(kTwoStages, {}, "job", Seconds(0.05)).ok());
  EXPECT_EQ(job().planned_with.at(job().input_of[0]), (jobs::Job::Planned{0.05, true}));
}

TEST_F(ProfileUploadsTest, ErrorsNameTheProblemAndChangeNothing) {
  EXPECT_EQ(upload(kTwoStages, {1}).error().message, "pipeline: 1; job job has 0 to 0");
  EXPECT_EQ(upload(kTwoStages, {-1}).error().code, ErrorCode::usage);
  EXPECT_EQ(upload(kTwoStages, {}, "nowhere").error().code, ErrorCode::not_found);
  EXPECT_THAT(upload("stage,instruction\n").error().message, StartsWith("uploaded: "));
  EXPECT_THAT(
      upload("stage,instruction,frequency,time,energy\n0,forward,700,1,1\n0,backward,700,1,1\n").error().message,
      HasSubstr("stage"))
      << "one stage for two ranks";
  EXPECT_EQ(live().committed, 3);
}

TEST_F(ProfileUploadsTest, AJobThatIsOverRejectsProfilesAlsoIfItEndsMeanwhile) {
  testing::Answer<Ok> late;
  jobs::NamedProfile profile{"", kTwoStages, {}, ""};
  profile.shape.microbatches = 2;
  uploads->upload("job", profile, {}, late.take(), "alice");
  base.append("job", {jobs::JobFinished{}});
  ASSERT_TRUE(late.given());
  EXPECT_EQ(late->error().message, "job job is finished");
  EXPECT_EQ(upload(kTwoStages).error().code, ErrorCode::conflict);
}

}  // namespace
}  // namespace perseus::plans
