// When a rank below its clock reports itself as a straggler.
#include "training/client/straggler_report.h"

#include <gtest/gtest.h>

#include <optional>

namespace perseus::client {
namespace {

std::optional<double> after(StragglerReport& report, int iterations, double time_s, bool limited, int version = 1) {
  std::optional<double> news;
  for (int i = 0; i < iterations; ++i) {
    if (const auto degree = report.ran(version, time_s, limited)) news = degree;
  }
  return news;
}

TEST(StragglerReport, ALimitThatSlowsIterationsIsReportedOnceUntilItEnds) {
  StragglerReport report;
  EXPECT_FALSE(after(report, 100, 1, false));
  EXPECT_FALSE(after(report, 7, 1.3, true)) << "not yet";
  EXPECT_DOUBLE_EQ(after(report, 1, 1.3, true).value_or(0), 1.3);
  EXPECT_FALSE(after(report, 100, 1.31, true));
  EXPECT_DOUBLE_EQ(after(report, 8, 1.6, true).value_or(0), 1.6);
  EXPECT_FALSE(after(report, 31, 1, false)) << "it may come back";
  EXPECT_DOUBLE_EQ(after(report, 1, 1, false).value_or(0), 1);
  EXPECT_FALSE(after(report, 100, 1, false));
}

TEST(StragglerReport, ALimitThatCostsNoTimeIsNone) {
  StragglerReport report;
  (void)after(report, 100, 1, false);
  EXPECT_FALSE(after(report, 100, 1.04, true));
}

TEST(StragglerReport, APlanThatTheReportBringsChangesNoDegree) {
  StragglerReport report;
  (void)after(report, 100, 1, false);
  EXPECT_TRUE(after(report, 8, 1.3, true));
  EXPECT_FALSE(after(report, 100, 1.5, true, 2)) << "nothing to compare with";
}

TEST(StragglerReport, ADeviceThatIsAlwaysLimitedIsNoStraggler) {
  StragglerReport report;
  EXPECT_FALSE(after(report, 1000, 1, true));
}

}  // namespace
}  // namespace perseus::client
