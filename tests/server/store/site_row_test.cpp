// The figures of a domain as text, and as sums.
#include "server/store/site_row.h"

#include <gtest/gtest.h>

namespace perseus::store {
namespace {

SiteFigures sample() {
  SiteFigures figures;
  figures.readings = 12;
  figures.limited = 6;
  figures.limit_w = 0.1 + 0.2;
  figures.missing_w = 1e9;
  figures.tiers = {{0, {96, 1.5}}, {0.9, {12, 0}}};
  return figures;
}

TEST(SiteRow, FiguresAreReadAsTheyWereWritten) {
  EXPECT_EQ(format_site_figures(sample()),
            "readings=12 limited=6 limit_w=0.30000000000000004 missing_w=1000000000 tier=0:96:1.5 tier=0.9:12:0");
  EXPECT_EQ(parse_site_figures(format_site_figures(sample())), sample());
  EXPECT_EQ(parse_site_figures(""), SiteFigures());
}

TEST(SiteRow, FiguresOfALaterVersionAreSkipped) {
  EXPECT_EQ(parse_site_figures("readings=12 of_later=some"), parse_site_figures("readings=12"));
}

TEST(SiteRow, OtherTextIsNone) {
  for (const char* text : {"readings", "readings=", "readings=1.5", "limit_w=x", "tier=1", "tier=1:2", "tier=a:1:2"}) {
    EXPECT_EQ(parse_site_figures(text), std::nullopt) << text;
  }
}

TEST(SiteRow, HoursAreTheSumsOfTheirMinutes) {
  const std::vector<SiteRow> minutes{{"hall", 60, 3600, "one", sample()},
                                     {"hall", 60, 7140, "two", sample()},
                                     {"hall", 60, 7200, "one", sample()},
                                     {"row", 60, 3600, "one", sample()}};
  const std::vector<SiteRow> hours = hours_of<&SiteRow::domain>(minutes);
  ASSERT_EQ(hours.size(), 3U);
  SiteFigures twice = sample();
  twice.add(sample());
  EXPECT_EQ(twice.readings, 24);
  EXPECT_EQ(twice.tiers.at(0).lost, 3);
  EXPECT_EQ(hours[0], (SiteRow{"hall", 3600, 3600, "", twice}));
  EXPECT_EQ(hours[1], (SiteRow{"hall", 3600, 7200, "", sample()}));
}

}  // namespace
}  // namespace perseus::store
