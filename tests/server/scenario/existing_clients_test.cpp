// Ranks of existing clients, which request their clocks once and wait for the answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

using namespace jobs;
using namespace service;
using ::testing::Contains;
using ::testing::HasSubstr;

/// Registers a job of one rank without a profile, as Zeus's client without job_metadata does.
std::string job_without_metadata(InProcess& target, const std::vector<std::string>& instructions = {}) {
  const auto job = target.register_job({})->job;
  jobs::RegisterRank rank = rank_of(job, {}, 0);
  rank.clocks_mhz = {1410, 1200};
  rank.instructions = instructions;
  EXPECT_TRUE(target.register_rank(rank).ok());
  return job;
}

int ask_once(InProcess& target, const std::string& job) {
  jobs::WaitForPlan request{job, 0, 0, std::nullopt, std::nullopt};
  request.asks_once = true;
  return target.wait_for_plan(request);
}

void expect_no_profile(InProcess& target, int wait) {
  const auto answer = target.answer_of(wait);
  ASSERT_TRUE(answer) << "it waits for ever";
  ASSERT_FALSE(answer->ok());
  EXPECT_EQ(answer->error().code, ErrorCode::conflict);
  EXPECT_THAT(answer->error().message, HasSubstr("has no profile"));
  EXPECT_THAT(answer->error().message, HasSubstr("job_metadata"));
}

TEST(ExistingClients, AJobWithoutMetadataGetsNoProfile) {
  InProcess target;
  const std::string job = job_without_metadata(target);
  int wait = ask_once(target, job);
  target.go_to(19);
  EXPECT_FALSE(target.answer_of(wait)) << "a profile may be uploaded";
  target.go_to(21);
  expect_no_profile(target, wait);
  // Also from a server that restarted while the rank waited.
  (void)ask_once(target, job);
  target.restart();
  wait = ask_once(target, job);
  target.go_to(45);
  expect_no_profile(target, wait);
}

TEST(ExistingClients, AProfileThatIsUploadedMeanwhileAnswers) {
  InProcess target;
  jobs::RegisterJob request;
  request.degrees.pp = 2;
  const std::string job = target.register_job(request)->job;
  for (const int rank : {0, 1}) ASSERT_TRUE(target.register_rank(rank_of(job, request.degrees, rank)).ok());
  const int wait = ask_once(target, job);
  target.go_to(15);
  ASSERT_TRUE(target.upload_profile(job, small_profile("", 4)).ok());
  const auto answer = target.answer_of(wait);
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ((*answer)->schedule->kind, jobs::StageSchedule::Kind::plan);
}

TEST(ExistingClients, ARankThatListsItsInstructionsGetsTheHighestClocksAndTheLogSaysSo) {
  LoggedLines log;
  service::ServiceOptions options;
  options.host = &log;
  InProcess target(options);
  const int wait = ask_once(target, job_without_metadata(target, {"forward", "backward"}));
  target.go_to(21);
  const auto answer = target.answer_of(wait);
  ASSERT_TRUE(answer && answer->ok());
  ASSERT_EQ((*answer)->schedule->clocks.size(), 2U);
  EXPECT_EQ((*answer)->schedule->clocks[1].clock, Megahertz(1410));
  EXPECT_THAT(log.lines, Contains(HasSubstr("rank 0 got the highest clock, since there was no plan after 20 s")));
}

}  // namespace
}  // namespace perseus::testing
