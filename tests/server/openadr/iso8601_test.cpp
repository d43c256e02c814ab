#include "server/openadr/iso8601.h"

#include <gtest/gtest.h>

namespace perseus::openadr {
namespace {

double seconds_of(std::string_view text) {
  const auto time = parse_event_time(text);
  EXPECT_TRUE(time && *time) << text;
  return time && *time ? **time : 0;
}

TEST(EventTimes, AreSecondsSince1970) {
  EXPECT_EQ(seconds_of("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(seconds_of("2026-03-14T09:30:00Z"), 1'773'480'600);
  EXPECT_EQ(seconds_of("2026-03-14T10:30:00+01:00"), 1'773'480'600);
  EXPECT_EQ(seconds_of("2026-03-14T09:30:00.250Z"), 1'773'480'600.25);
  EXPECT_EQ(seconds_of("2026-03-14 04:00:00-05:30"), 1'773'480'600);
  EXPECT_EQ(seconds_of("2026-03-14T09:30Z"), 1'773'480'600);
  EXPECT_EQ(seconds_of("2026-03-14T10:30:00+0100"), 1'773'480'600);
  EXPECT_EQ(seconds_of("2026-03-14T10:30+01"), 1'773'480'600);
  EXPECT_EQ(time_text(1'773'480'600.9), "2026-03-14T09:30:00Z");
}

TEST(EventTimes, TheBeginningOfTimeIsNow) {
  for (const char* text : {"0001-01-01", "0001-01-01T00:00:00", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z",
                           "0000-00-00", "0000-01-01T00:00:00Z", "0000-12-31T23:00:00Z", "0001-01-01T00:00:00+0100"}) {
    const auto time = parse_event_time(text);
    ASSERT_TRUE(time) << text;
    EXPECT_FALSE(*time) << text;
  }
}

TEST(EventTimes, OthersAreRefused) {
  for (const char* text : {"", "now", "2026-03-14", "2026-03-14T09:30:00", "2026-02-30T00:00:00Z",
                           "2026-03-14T25:00:00Z", "2026-03-14T09:30:00Zulu", "2026-03-14T09:30", "2026-03-14T09:30.5Z",
                           "2026-03-14T09:30:00+1", "0000-00-00T09", "2026-3-14T09:30:00Z"}) {
    EXPECT_FALSE(parse_event_time(text)) << text;
  }
}

TEST(IsoDurations, OfTheSpecificationAndOfOtherServers) {
  const auto duration = [](std::string_view text) { return *parse_iso_duration(text); };
  EXPECT_EQ(duration("PT1H"), (IsoDuration{0, 3600, false}));
  EXPECT_EQ(duration("P0Y0M0DT1H0M0S"), (IsoDuration{0, 3600, false}));
  EXPECT_EQ(duration("P0Y1M2DT3H4M5S"), (IsoDuration{1, 2 * 86400 + 3 * 3600 + 4 * 60 + 5, false}));
  EXPECT_EQ(duration("P2Y"), (IsoDuration{24, 0, false}));
  EXPECT_EQ(duration("P1W"), (IsoDuration{0, 7 * 86400, false}));
  EXPECT_EQ(duration("PT0.5S"), (IsoDuration{0, 0.5, false}));
  EXPECT_TRUE(duration("PT0S").is_zero());
  EXPECT_TRUE(duration("P9999Y").never_ends);
  EXPECT_TRUE(duration("PT999999999H").never_ends);
}

TEST(IsoDurations, OthersAreRefused) {
  for (const char* text :
       {"", "P", "PT", "P1", "1H", "-P1D", "PT1D", "P1H", "P1DT", "PT1H1H", "PT1S1M", "PT1.5H", "PT1H "}) {
    EXPECT_FALSE(parse_iso_duration(text)) << text;
  }
}

TEST(IsoDurations, MonthsAreThoseOfTheCalendar) {
  const auto after = [](std::string_view start, std::string_view duration) {
    return time_text(end_of(seconds_of(start), *parse_iso_duration(duration)));
  };
  EXPECT_EQ(after("2026-01-31T10:00:00Z", "P1M"), "2026-02-28T10:00:00Z");
  EXPECT_EQ(after("2024-02-29T00:00:00Z", "P1Y"), "2025-02-28T00:00:00Z");
  EXPECT_EQ(after("2026-11-30T23:59:59Z", "P3M1DT1S"), "2027-03-02T00:00:00Z");
  EXPECT_EQ(after("2026-11-30T23:59:59Z", "P9999Y"), "never");
}

}  // namespace
}  // namespace perseus::openadr
