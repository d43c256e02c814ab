#include "io/report/heat_map.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HeatMap, ShowsEachShareAsTextAndTooltip) {
  const std::string svg = heat_map("Waiting", {{"rank 0", "rank 1"}, {"dp 0", "<dp 1>"}, {{0.25, 0}, {1, 0.5}}});
  for (const char* const text : {"Waiting", "rank 1", "&lt;dp 1&gt;", "25.0 %", "dp 0, rank 0: 25.0 %"})
    EXPECT_THAT(svg, HasSubstr(text));
}

TEST(HeatMap, KeepsManyRanksOnOnePage) {
  HeatMap map;
  for (int c = 0; c < 16; ++c) map.columns.push_back(fmt::format("rank {}", c));
  for (int r = 0; r < 128; ++r) map.rows.push_back(fmt::format("dp {}", r));
  map.shares.assign(128, std::vector<double>(16, 0.5));
  const std::string svg = heat_map("Waiting", map);
  EXPECT_THAT(svg, HasSubstr("dp 127, rank 15: 50.0 %"));
  EXPECT_THAT(svg, Not(HasSubstr(">dp 127<")));
  EXPECT_LT(svg.size(), 1'000'000U);
}

}  // namespace
}  // namespace perseus::report
