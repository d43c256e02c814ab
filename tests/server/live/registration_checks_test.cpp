#include "server/live/registration_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/jobs_in_memory.h"

namespace perseus::live {
namespace {

using ::testing::HasSubstr;

class RegistrationChecks : public ::testing::Test {
 protected:
  RegistrationChecks() { base_.create("job", 1); }
  static jobs::RegisterRank request(int rank, std::int64_t epoch = 0) {
    jobs::RegisterRank request;
    request.job = "job";
    request.rank = request.pp_rank = rank;
    request.accelerator = "GPU-" + std::to_string(rank);
    request.epoch = epoch;
    return request;
  }
  const jobs::Job& job() { return base_.live("job").job; }

  testing::JobsInMemory base_;
};

TEST_F(RegistrationChecks, AJobHasAtMostTheAllowedRanks) {
  jobs::RegisterJob request;
  request.degrees = {2, 4, 1};
  EXPECT_TRUE(decide_job(request, 8).ok());
  const auto large = decide_job(request, 7);
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, ErrorCode::too_large);
  request.world_size = 9;
  EXPECT_FALSE(decide_job(request, 100).ok()) << "not the product of the degrees";
}

TEST_F(RegistrationChecks, ANewRankBecomesAnEventAndARepetitionDoesNot) {
  const auto added = decide_rank(job(), request(1));
  ASSERT_TRUE(added.ok()) << added.error().message;
  EXPECT_TRUE(*added);
  const auto repeated = decide_rank(job(), request(0));
  ASSERT_TRUE(repeated.ok()) << repeated.error().message;
  EXPECT_FALSE(*repeated);
}

TEST_F(RegistrationChecks, ARankOutsideTheDegreesIsRefused) {
  const auto outside = decide_rank(job(), request(2));
  ASSERT_FALSE(outside.ok());
  EXPECT_EQ(outside.error().code, ErrorCode::usage);
}

TEST_F(RegistrationChecks, APlaceThatAnotherRankHoldsIsAConflict) {
  jobs::RegisterRank taken = request(1);
  taken.pp_rank = 0;
  const auto refused = decide_rank(job(), taken);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
}

TEST_F(RegistrationChecks, OnlyTheProcessThatHoldsTheRankMayReport) {
  const auto later = decide_rank(job(), request(0, 77));
  ASSERT_TRUE(later.ok());
  ASSERT_TRUE(*later) << "a later process takes the rank over";
  base_.append("job", {**later});
  EXPECT_TRUE(check_holder(job(), 0, 77).ok());
  EXPECT_TRUE(check_holder(job(), 0, 0).ok()) << "epoch not given";
  EXPECT_EQ(check_holder(job(), 0, 76).error().code, ErrorCode::conflict);
}

TEST(RegistrationTexts, NamesAreShortAndVisible) {
  EXPECT_TRUE(check_text("name", "run 1", 5).ok());
  EXPECT_FALSE(check_text("name", "run 10", 5).ok());
  EXPECT_FALSE(check_text("name", "run\n1", 5).ok());
  EXPECT_TRUE(check_profile_name("gpt3-xl_1.0+a").ok());
  for (const std::string& wrong : {std::string(), std::string(".hidden"), std::string("a/b"), std::string(129, 'a')}) {
    EXPECT_FALSE(check_profile_name(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace perseus::live
