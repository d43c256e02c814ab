// Plans as ranks read them: which of them have the server's time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "server/routes/exchange.h"

namespace perseus::routes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr AnswerTimes kTimes{1.8e9 + 0.25, 2.5};
constexpr const char* kTimesText = R"("sent_at_s":1800000000.25,"held_s":2.5)";

std::string answer_with(const std::optional<jobs::PowerBudget>& budget) {
  const auto schedule = std::make_shared<jobs::StageSchedule>();
  schedule->budget = budget;
  return plan_json({schedule, 3}, kTimes);
}

TEST(PlanAnswers, APlanUnderABudgetHasTheServersTime) {
  EXPECT_THAT(answer_with(jobs::PowerBudget{300, 15, 900}), HasSubstr(kTimesText));
  EXPECT_THAT(answer_with(std::nullopt), Not(HasSubstr("sent_at_s")));
  EXPECT_THAT(registered_json({1, 1, 1, jobs::PlanAnswer{nullptr, 3, 0, true}}, kTimes), HasSubstr(kTimesText));
}

TEST(PlanAnswers, ARenewalHasTheServersTime) {
  EXPECT_THAT(plan_json({nullptr, 3, 0, true}, kTimes), HasSubstr(kTimesText));
  EXPECT_EQ(plan_json({nullptr, 3}, kTimes), R"({"rank":3,"unchanged":true})");
}

TEST(PlanAnswers, APlanThatRanksShareHasTheTimeOfEachAnswer) {
  const auto schedule = std::make_shared<jobs::StageSchedule>();
  schedule->budget = jobs::PowerBudget{300, 15, 900};
  EXPECT_THAT(plan_json({schedule, 0}, kTimes), HasSubstr(R"("held_s":2.5)"));
  EXPECT_THAT(plan_json({schedule, 1}, {kTimes.sent_at_s, 7.5}), HasSubstr(R"("held_s":7.5)"));
}

}  // namespace
}  // namespace perseus::routes
