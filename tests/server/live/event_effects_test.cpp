#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/live/job_view.h"
#include "tests/server/service/service_parts.h"

namespace perseus::live {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(EventEffects, PlansDoNotDependOnRanksAndReports) {
  EXPECT_TRUE(leaves_plans_unchanged(jobs::RankRegistered{}));
  EXPECT_TRUE(leaves_plans_unchanged(jobs::IterationsCounted{}));
  EXPECT_TRUE(leaves_plans_unchanged(jobs::JobSeen{}));
  EXPECT_FALSE(leaves_plans_unchanged(jobs::PlanDeployed{}));
  EXPECT_FALSE(leaves_plans_unchanged(jobs::StragglerTookEffect{}));
  EXPECT_FALSE(leaves_plans_unchanged(jobs::PolicySet{jobs::PowerCap{Watts(900)}}));
}

TEST(EventEffects, IterationsAreCountedBeforeAnEventThatRevaluesThem) {
  testing::ServiceParts parts;
  parts.base.create("job");
  parts.plan();
  parts.deploy(0);
  parts.base.clock().advance(100);
  const jobs::EventBody deployed = parts.deployed(0);
  const auto expected = counts_before(parts.live(), deployed);
  EXPECT_THAT(counts_before(parts.live(), jobs::JobSeen{}), IsEmpty());
  EXPECT_THAT(counts_before(parts.live(), testing::JobsInMemory::rank_of_stage(0)), SizeIs(expected.size()))
      << "a rank that restarts";
  jobs::RankRegistered other = testing::JobsInMemory::rank_of_stage(0);
  other.rank = 7;
  EXPECT_THAT(counts_before(parts.live(), other), IsEmpty()) << "a new rank changes no plan";
}

}  // namespace
}  // namespace perseus::live
