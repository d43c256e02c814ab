#include "server/openadr/watt_steps.h"

#include <gtest/gtest.h>

namespace perseus::openadr {
namespace {

constexpr double kLimitsFrom_s = 1'800'000'000, kOneMinute_s = 60;

/// 1 kW and 2 kW in turn, each for half a minute.
SeenEvent alternating_for(int minutes) {
  SeenEvent seen;
  seen.now_means_s = kLimitsFrom_s;
  seen.event.period.duration = IsoDuration{0, kOneMinute_s};
  seen.event.duration = IsoDuration{0, minutes * kOneMinute_s};
  seen.event.intervals.push_back({0, {}, {{"IMPORT_CAPACITY_LIMIT", {1, 2}}}});
  return seen;
}

std::vector<WattStep> steps_of(const SeenEvent& seen) {
  FollowSettings settings;
  settings.default_limit = Watts(3000);
  return watt_steps({&seen, 1}, {}, settings, "seed", kLimitsFrom_s).steps;
}

TEST(WattSteps, OfMoreThanAreKeptTheLastHasTheLeastOfTheRest) {
  const auto whole = steps_of(alternating_for(499));
  EXPECT_EQ(whole.size(), 999U);
  EXPECT_EQ(whole.back(), (WattStep{kLimitsFrom_s + 499 * kOneMinute_s, Watts(3000)}));

  const auto cut = steps_of(alternating_for(1162));
  EXPECT_EQ(cut.size(), 999U);  // the thousandth is as low as the one before it
  EXPECT_EQ(cut.back(), (WattStep{kLimitsFrom_s + 499 * kOneMinute_s, Watts(1000)}));
}

TEST(WattSteps, ALevelWithoutWattsLiftsNoLevelOfALowerPriority) {
  SeenEvent unread = alternating_for(1), other = unread;
  unread.event.priority = 0;
  unread.event.intervals[0].payloads = {{"SIMPLE", {3}}};
  other.event.intervals[0].payloads = {{"SIMPLE", {1}}};
  FollowSettings settings;
  settings.levels[1] = Watts(2200);
  const auto steps = watt_steps(std::vector{unread, other}, {}, settings, "seed", kLimitsFrom_s).steps;
  EXPECT_EQ(steps.front(), (WattStep{kLimitsFrom_s, Watts(2200)}));
}

}  // namespace
}  // namespace perseus::openadr
