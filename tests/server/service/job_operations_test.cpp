// The warnings of policies that no plan can keep.
#include "server/service/job_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/service/service_parts.h"

namespace perseus::service {
namespace {

using ::testing::HasSubstr;

class JobOperationsTest : public ::testing::Test, protected testing::ServiceParts {
 protected:
  JobOperationsTest() { base.create("job"); }
  Result<jobs::PolicyChanged> set_policy(const jobs::Policy& policy) {
    return answer_of<jobs::PolicyChanged>([&](auto done) { operations_.set_policy({"job", policy}, done); });
  }

  views::RecentEvents recent_{base.jobs(), base.access_to_store(), base.clock()};
  struct : power::LimitListener {
    void limit_changed(jobs::JobEvent /*event*/) override {}
  } listener_;
  power::SiteHistory history_{base.access_to_store(), base.clock(), due, "a test"};
  power::SitePower site_{options, base.access_to_store(), base.jobs(), base.clock(), due, base, listener_, history_};
  JobOperations operations_{base.jobs(), base.clock(), access, *profiles, recent_, site_};
};

TEST_F(JobOperationsTest, APolicyThatNoPlanCanKeepIsSetWithAWarning) {
  const jobs::PowerCap little{Watts(1)};
  EXPECT_EQ(set_policy(little)->warning, "") << "not known without a frontier";
  plan();
  EXPECT_THAT(set_policy(little)->warning, HasSubstr("power cap 1 W cannot be kept: the least is"));
  EXPECT_EQ(set_policy(jobs::PowerCap{Watts(1e6)})->warning, "");
  EXPECT_THAT(set_policy(jobs::Pin{Seconds(0.001), std::nullopt})->warning,
              HasSubstr("cannot be kept: the fastest plan"));
  EXPECT_THAT(set_policy(jobs::Pin{std::nullopt, 999})->warning, HasSubstr("cannot be kept: the fastest is point"));
  EXPECT_EQ(set_policy(jobs::Pin{std::nullopt, 0})->warning, "");
  EXPECT_EQ(job().policies.size(), 2U) << "they are set all the same";
}

TEST_F(JobOperationsTest, AWarningIsOfThePolicyThatWasSet) {
  plan();
  EXPECT_NE(set_policy(jobs::PowerCap{Watts(1)})->warning, "");
  EXPECT_EQ(set_policy(jobs::MaxSlowdown{1.1, {}, {}, ""})->warning, "") << "the cap's is another one";
  EXPECT_THAT(set_policy(jobs::Pin{std::nullopt, 0})->warning,
              HasSubstr("power cap 1 W is not kept: the job is pinned to point 0, which comes first and draws"));
  EXPECT_THAT(set_policy(jobs::PowerCap{Watts(2)})->warning, HasSubstr("power cap 2 W is not kept: the job is pinned"));
  EXPECT_EQ(set_policy(jobs::PowerCap{Watts(1e6)})->warning, "") << "the pin keeps it too";
  EXPECT_EQ(set_policy(jobs::MaxSlowdown{1.2, {}, {}, ""})->warning, "the job is pinned to point 0, which comes first");
}

}  // namespace
}  // namespace perseus::service
