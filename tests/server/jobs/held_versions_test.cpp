// What a job counts as while the iteration under way began without the period that its ranks hold.
#include <gtest/gtest.h>

#include "server/jobs/power_budget.h"

namespace perseus::jobs {
namespace {

TEST(HeldVersionsTest, APeriodThatFollowsAnotherWithinAnIterationKeepsWhatCountedBefore) {
  HeldVersions held;
  held.acts_from(10, 0, Watts(260));
  held.acts_from(11, 1, Watts(240));
  EXPECT_FALSE(held.acts(10.9));
  EXPECT_EQ(held.before(), Watts(260));
  EXPECT_TRUE(held.acts(11));
  held.acts_from(30, 20, Watts(240));  // the earlier ones are over
  EXPECT_EQ(held.before(), Watts(240));
}

TEST(HeldVersionsTest, AnUnknownPowerBeforeStaysUnknown) {
  HeldVersions held;
  held.acts_from(10, 0, std::nullopt);
  held.acts_from(11, 1, Watts(240));
  EXPECT_FALSE(held.before().has_value());
}

}  // namespace
}  // namespace perseus::jobs
