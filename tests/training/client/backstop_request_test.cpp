#include "training/client/backstop_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace perseus::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BackstopRequests : public ::testing::Test {
 protected:
  BackstopRequests() {
    request_.use_control([this](Watts limit) { requested_.push_back(limit.value()); });
  }
  void arrives(std::int64_t version, double power_limit_w, bool at_once = false, bool follows = true) {
    ClockPlan plan;
    plan.version = version;
    plan.budget = PlanBudget{15, 900, at_once, {}, power_limit_w};
    request_.arrives(plan, follows);
  }
  BackstopRequest request_;
  std::vector<double> requested_;
};

TEST_F(BackstopRequests, AHigherLimitComesAtOnceAndALowerOneAfterThePlanBefore) {
  arrives(1, 400);
  arrives(2, 450);
  arrives(3, 350);
  EXPECT_THAT(requested_, ElementsAre(400, 450));
  request_.follows(2, 100);
  request_.follows(2, 200);
  EXPECT_THAT(requested_, ElementsAre(400, 450)) << "the plan is not in force";
  request_.follows(3, 300);
  request_.follows(3, 304.9);
  EXPECT_THAT(requested_, ElementsAre(400, 450)) << "the GPU may compute what was queued before";
  request_.follows(3, 305);
  request_.follows(3, 306);
  EXPECT_THAT(requested_, ElementsAre(400, 450, 350));
}

TEST_F(BackstopRequests, APlanThatHoldsAtOnceLowersItAtOnce) {
  arrives(1, 400);
  arrives(2, 350, true);
  arrives(3, 300, false, false);
  EXPECT_THAT(requested_, ElementsAre(400, 350, 300)) << "the last one follows no plan";
}

TEST_F(BackstopRequests, ANewerPlanReplacesALowerLimitThatWaits) {
  arrives(1, 400);
  arrives(2, 350);
  arrives(3, 400);
  request_.follows(3, 100);
  request_.follows(3, 200);
  EXPECT_THAT(requested_, ElementsAre(400));
}

TEST_F(BackstopRequests, ThereIsNoneWithoutABudgetOrItsWatts) {
  request_.arrives(ClockPlan(), true);
  arrives(1, 0);
  EXPECT_THAT(requested_, IsEmpty());
  arrives(2, 400);
  arrives(3, 0);
  arrives(4, 400);
  request_.arrives(ClockPlan(), true);
  EXPECT_THAT(requested_, ElementsAre(400, 0, 400, 0));
}

}  // namespace
}  // namespace perseus::client
