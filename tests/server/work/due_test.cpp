#include "server/work/due.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace perseus::work {

class DueTest : public ::testing::Test {
 protected:
  std::vector<std::string> rung(double now_s) {
    due_.perform(now_s);
    return std::exchange(rung_, {});
  }
  void ring_site() { rung_.emplace_back("site"); }
  void ring_waits() { rung_.emplace_back("waits"); }
  void ring_again(double now_s) {
    rung_.emplace_back("again");
    again_.set(now_s);
    site_.set(now_s);
  }
  using SiteAlarm = AlarmOf<&DueTest::ring_site>;
  Due due_;
  std::vector<std::string> rung_;
  SiteAlarm site_{due_, Due::Turn::site, *this};
  AlarmOf<&DueTest::ring_waits> waits_{due_, Due::Turn::waits, *this};
  AlarmOf<&DueTest::ring_again> again_{due_, Due::Turn::jobs, *this};
};

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(DueTest, AlarmsThatAreDueRingOnceInTheOrderOfTheirTurns) {
  EXPECT_EQ(due_.next(), std::nullopt);
  site_.set(1);
  waits_.set(2);
  EXPECT_EQ(due_.next(), 1);
  EXPECT_THAT(rung(0.5), IsEmpty());
  EXPECT_THAT(rung(2), ElementsAre("waits", "site")) << "whichever was due first";
  EXPECT_THAT(rung(3), IsEmpty());
  EXPECT_EQ(due_.next(), std::nullopt);
}

TEST_F(DueTest, AnAlarmSetAgainAsItRingsWaitsForTheNextCall) {
  again_.set(1);
  EXPECT_THAT(rung(1), ElementsAre("again", "site"));
  EXPECT_EQ(due_.next(), 1);
}

TEST_F(DueTest, AnAlarmThatHasEndedDoesNotRing) {
  {
    SiteAlarm ended(due_, Due::Turn::jobs, *this);
    ended.set(1);
  }
  EXPECT_EQ(due_.next(), std::nullopt);
  EXPECT_THAT(rung(2), IsEmpty());
}

}  // namespace
}  // namespace perseus::work
