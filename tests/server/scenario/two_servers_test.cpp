// Two servers on one database: each knows every change that the other has acknowledged.
#include <gtest/gtest.h>

#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

using namespace jobs;
using namespace service;

TEST(TwoServers, AJobThatChangesWhileItIsReadIsReadAgain) {
  const auto database = std::make_shared<store::MemoryDatabase>();
  service::ServiceOptions options;
  options.owner = "one";
  InProcess one(options, database);
  jobs::RegisterJob request;
  request.degrees = {2, 2, 1};
  const std::string job = one.register_job(request).value().job;
  options.owner = "other";
  InProcess other(options, database);

  std::optional<Result<jobs::JobView>> shown;
  other.hold_answers(true);
  other.service().job(job, [&](const Result<jobs::JobView>& view) { shown = view; });
  other.settle();  // the job was read, and the result is on its way
  jobs::RegisterRank rank;
  rank.job = job;
  ASSERT_TRUE(one.register_rank(rank).ok());
  other.settle();  // receives the change
  other.hold_answers(false);
  ASSERT_TRUE(shown && *shown);
  EXPECT_EQ((*shown)->ranks_registered, 1);
  EXPECT_EQ(other.job(job)->sequence, one.job(job)->sequence);
}

}  // namespace
}  // namespace perseus::testing
