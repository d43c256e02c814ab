#include "planning/model/clock_timeline.h"

#include <gtest/gtest.h>

namespace perseus::model {
namespace {

constexpr Seconds kLatency(3);

TEST(ClockTimeline, ARequestDuringAChangeWaitsForItsEnd) {
  ClockTimeline clock(Megahertz(1400));
  clock.request(Megahertz(900), Seconds(0), kLatency);
  clock.request(Megahertz(1100), Seconds(1), kLatency);
  EXPECT_EQ(clock.at(Seconds(2.9)), Megahertz(1400));
  EXPECT_EQ(clock.at(Seconds(3)), Megahertz(900));
  EXPECT_EQ(clock.at(Seconds(5.9)), Megahertz(900));
  EXPECT_EQ(clock.at(Seconds(6)), Megahertz(1100));
}

TEST(ClockTimeline, OfSeveralRequestsThatWaitTheNewestCounts) {
  ClockTimeline clock(Megahertz(1400));
  clock.request(Megahertz(900), Seconds(0), kLatency);
  clock.request(Megahertz(1100), Seconds(1), kLatency);
  clock.request(Megahertz(1000), Seconds(2), kLatency);
  EXPECT_EQ(clock.changes().size(), 2U);
  EXPECT_EQ(clock.at(Seconds(6)), Megahertz(1000));
}

TEST(ClockTimeline, BackToTheClockOfTheChangeUnderWayDropsTheOneThatWaits) {
  ClockTimeline clock(Megahertz(1400));
  clock.request(Megahertz(900), Seconds(0), kLatency);
  clock.request(Megahertz(1100), Seconds(1), kLatency);
  clock.request(Megahertz(900), Seconds(2), kLatency);
  EXPECT_EQ(clock.changes().size(), 1U);
  EXPECT_EQ(clock.at(Seconds(100)), Megahertz(900));
}

TEST(ClockTimeline, PartsOfATimeAddUpAfterOldChangesAreForgotten) {
  ClockTimeline clock(Megahertz(1400));
  clock.request(Megahertz(900), Seconds(0), kLatency);
  clock.request(Megahertz(1100), Seconds(10), kLatency);
  clock.forget_before(Seconds(5));
  EXPECT_EQ(clock.at(Seconds(5)), Megahertz(900));
  Seconds sum;
  int parts = 0;
  clock.for_each(Seconds(5), Seconds(20), [&](Megahertz at, Seconds from, Seconds to) {
    sum += to - from;
    EXPECT_EQ(at, clock.at(from));
    ++parts;
  });
  EXPECT_EQ(parts, 2);
  EXPECT_EQ(sum, Seconds(15));
}

}  // namespace
}  // namespace perseus::model
