// Which messages the client logs, on a hand-turned clock.
#include "training/client/complaints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace perseus::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ComplaintsTest : public ::testing::Test {
 protected:
  double now_s = 1000;
  std::vector<std::string> lines;
  Complaints complaints{[this](LogLevel, const std::string& line) { lines.push_back(line); }, PauseLimits{10, 3600},
                        [this] { return now_s; }};
};

TEST_F(ComplaintsTest, ACauseIsLoggedWhenItAppearsAndWhenItIsGone) {
  for (int i = 0; i < 100; ++i) complaints.raise(Cause::server, "gone");
  now_s += 11;
  complaints.clear(Cause::server, "back");
  complaints.clear(Cause::server, "back");
  EXPECT_THAT(lines, ElementsAre("gone", "back"));
  EXPECT_TRUE(complaints.all().empty());
}

TEST_F(ComplaintsTest, WhatAServerSaysStaysOnItsLine) {
  complaints.raise(Cause::server, "\x1b[31m\nperseus: forged");
  complaints.note(News::plan, "slower because \r\n" + std::string(1 << 20, 'x'));
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0], R"(\x1b[31m\x0aperseus: forged)");
  EXPECT_EQ(complaints.all().front().message, lines[0]);
  EXPECT_THAT(lines[1], HasSubstr(R"(slower because \x0d\x0axxx)"));
  EXPECT_LT(lines[1].size(), 2100);
}

TEST_F(ComplaintsTest, TheLineThatACauseIsGoneWaitsForTheLeastPause) {
  complaints.raise(Cause::server, "gone");
  now_s += 1;
  complaints.clear(Cause::server, "back");
  complaints.remind();
  EXPECT_THAT(lines, ElementsAre("gone"));
  EXPECT_TRUE(complaints.all().empty()) << "of the status";
  now_s += 10;
  complaints.remind();
  complaints.remind();
  EXPECT_THAT(lines, ElementsAre("gone", "back"));
}

TEST_F(ComplaintsTest, OfNewsWithinTheLeastPauseTheLastIsLogged) {
  for (int plan = 1; plan <= 1000; ++plan) {
    complaints.note(News::plan, "plan " + std::to_string(plan));
    complaints.remind();
    now_s += 0.03;
  }
  EXPECT_THAT(lines, ElementsAre("plan 1", "plan 335", "plan 669"));
  complaints.note(News::trial, "another kind");
  complaints.remind(true);
  EXPECT_THAT(lines, ElementsAre("plan 1", "plan 335", "plan 669", "another kind", "plan 1000"));
}

TEST_F(ComplaintsTest, ACauseThatAppearsOnceMoreIsLoggedOnceMore) {
  complaints.raise(Cause::slowdown, "plan 1");
  complaints.raise_again(Cause::slowdown, "plan 2");
  EXPECT_EQ(complaints.all().front().message, "plan 2");
  EXPECT_EQ(complaints.all().front().times, 2);
  EXPECT_THAT(lines, ElementsAre("plan 1"));
  now_s += 11;
  complaints.remind();
  EXPECT_THAT(lines, ElementsAre("plan 1", "plan 2"));
}

TEST_F(ComplaintsTest, AFlappingCauseIsLoggedAfterGrowingPausesWithItsCount) {
  for (int i = 0; i < 16 * 3600; ++i) {  // 16 times a second for an hour
    complaints.raise(Cause::server, "gone");
    EXPECT_TRUE(complaints.raised(Cause::server));
    complaints.clear(Cause::server, "back");
    now_s += 1.0 / 16;
  }
  // After 10, 20, 40, ... s. It is never gone for long enough to log that.
  EXPECT_EQ(lines.size(), 9U);
  EXPECT_EQ(lines[0], "gone");
  EXPECT_THAT(lines[1], HasSubstr("gone (160 times since the last message about it)"));
  EXPECT_THAT(lines[2], HasSubstr("gone (320 times"));
  complaints.raise(Cause::server, "gone");
  EXPECT_EQ(complaints.all().front().times, 16 * 3600 + 1);
}

TEST_F(ComplaintsTest, TheEndOfAFlappingCauseIsLogged) {
  complaints.raise(Cause::server, "gone");
  for (int i = 0; i < 30; ++i) {
    complaints.clear(Cause::server, "back");
    now_s += 0.1;
    complaints.raise(Cause::server, "gone");
    complaints.remind();
  }
  complaints.clear(Cause::server, "back");
  complaints.remind();
  EXPECT_THAT(lines, ElementsAre("gone"));
  now_s += 10;
  complaints.remind();
  complaints.remind();
  EXPECT_THAT(lines, ElementsAre("gone", "back"));
}

TEST_F(ComplaintsTest, ACauseThatComesBackToStayIsLoggedAtThePausesEnd) {
  complaints.raise(Cause::device, "lost");
  complaints.clear(Cause::device, "found");
  now_s += 1;
  complaints.raise(Cause::device, "lost again");
  complaints.remind();
  EXPECT_THAT(lines, ElementsAre("lost"));
  now_s += 10;
  complaints.remind();
  complaints.remind();
  EXPECT_THAT(lines, ElementsAre("lost", "lost again"));
  now_s += 10;
  complaints.clear(Cause::device, "found again");
  EXPECT_THAT(lines, ElementsAre("lost", "lost again", "found again"));
}

TEST_F(ComplaintsTest, ACauseThatStayedAwayStartsAnew) {
  for (int i = 0; i < 1000; ++i) {
    complaints.raise(Cause::server, "gone");
    complaints.clear(Cause::server, "back");
    now_s += 1;
  }
  lines.clear();
  now_s += 3601;
  complaints.raise(Cause::server, "gone");
  EXPECT_THAT(lines, ElementsAre(HasSubstr("gone")));
  complaints.clear(Cause::server, "back");
  now_s += 10;
  complaints.raise(Cause::server, "gone");
  EXPECT_EQ(lines.size(), 2U) << "the pause is the shortest again";
}

TEST_F(ComplaintsTest, CausesPauseEachForItself) {
  complaints.raise(Cause::server, "gone");
  complaints.clear(Cause::server, "back");
  complaints.raise(Cause::energy, "no energy");
  complaints.raise(Cause::server, "gone");
  EXPECT_THAT(lines, ElementsAre("gone", "no energy"));
  EXPECT_EQ(complaints.all().size(), 2U);
}

TEST_F(ComplaintsTest, NothingIsLoggedAfterSilence) {
  complaints.silence(0);
  complaints.raise(Cause::server, "gone");
  complaints.clear(Cause::server, "back");
  complaints.say(LogLevel::info, "anything");
  EXPECT_TRUE(lines.empty());
}

}  // namespace
}  // namespace perseus::client
