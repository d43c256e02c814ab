// Forecasts of a site while planners are busy.
#include "server/power/site_forecasts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/scenario/in_process.h"

namespace perseus::testing {
namespace {

using ::testing::HasSubstr;

TEST(SiteForecasts, AreRefusedAfterAWhileAndMadeOnceThePlannersAreFree) {
  InProcess target;
  ASSERT_TRUE(target.set_site(R"({"domains":[{"name":"hall","limits":[{"limit_w":1000}]}]})").ok());
  target.go_to(1);
  std::vector<Result<power::SiteForecast>> answers;
  const auto ask = [&](double hours) {
    target.service().forecasts.forecast(hours,
                                        [&](const Result<power::SiteForecast>& made) { answers.push_back(made); });
    target.settle();
  };
  target.hold_work(true);
  ask(1);
  target.go_to(10);
  ask(2);
  EXPECT_EQ(answers.size(), 0U);
  target.go_to(1 + power::SiteForecasts::kPatience_s);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].error().code, ErrorCode::unavailable);
  EXPECT_THAT(answers[0].error().message, HasSubstr("no forecast within 30 s"));
  target.hold_work(false);
  target.settle();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_TRUE(answers[1].ok());
}

}  // namespace
}  // namespace perseus::testing
