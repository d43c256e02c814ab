#include "server/openadr/signal_steps.h"

#include <gtest/gtest.h>

namespace perseus::openadr {
namespace {

constexpr double kNow_s = 1'800'000'000, kOneHour_s = 3600;

SeenEvent prices(const std::string& id, double from_s, const std::vector<std::vector<double>>& hours) {
  SeenEvent seen;
  seen.event.id = id;
  seen.event.period.has_start = true;
  seen.event.period.start_s = from_s;
  seen.event.period.duration = IsoDuration{0, kOneHour_s};
  for (const auto& values : hours) {
    EventPayload payload{"PRICE", {}};
    for (const double value : values) payload.values.emplace_back(value);
    seen.event.intervals.push_back({0, {}, {payload}});
  }
  return seen;
}

/// "0:0.1 1:none": hours from now, and values.
std::string signal_of(const std::vector<SeenEvent>& events, const std::string& payload = "PRICE") {
  const FollowedSignal signal = signal_steps(events, {}, payload, "seed", kNow_s);
  std::string text;
  for (const NotFollowed& one : signal.not_followed) text += one.text + " ";
  for (const SignalStep& step : signal.steps) {
    const std::string value = step.value ? std::to_string(*step.value).substr(0, 5) : "none";
    text += std::to_string((step.from_s - kNow_s) / kOneHour_s).substr(0, 4) + ":" + value + " ";
  }
  return text;
}

TEST(SignalSteps, FollowPricesAlsoNegativeOnes) {
  EXPECT_EQ(signal_of({}), "0.00:none ");
  EXPECT_EQ(signal_of({prices("a", kNow_s - kOneHour_s, {{9}, {0.25}, {-0.5}})}), "0.00:0.250 1.00:-0.50 2.00:none ");
  EXPECT_EQ(signal_of({prices("a", kNow_s + kOneHour_s, {{1, 2}})}), "0.00:none 1.00:1.000 1.50:2.000 2.00:none ");
  EXPECT_EQ(signal_of({prices("a", kNow_s, {{1}})}, "GHG"), "0.00:none ");
}

TEST(SignalSteps, TakeThePriorityThenTheGreatestValue) {
  SeenEvent day = prices("day", kNow_s, {{1}, {1}, {1}});
  const SeenEvent other = prices("other", kNow_s + kOneHour_s, {{2}});
  EXPECT_EQ(signal_of({day, other}), "0.00:1.000 1.00:2.000 2.00:1.000 3.00:none ");
  day.event.priority = 0;
  EXPECT_EQ(signal_of({day, other}), "0.00:1.000 3.00:none ");
}

TEST(SignalSteps, FollowUnitsAndRepetition) {
  SeenEvent day = prices("day", kNow_s, {{100}, {200}});
  day.event.units["PRICE"] = "MWH";
  day.event.duration = IsoDuration{0, 3 * kOneHour_s};
  EXPECT_EQ(signal_of({day}), "0.00:0.100 1.00:0.200 2.00:0.100 3.00:none ");
  day.event.duration = IsoDuration{0, 0, true};
  const auto steps = signal_steps(std::vector{day}, {}, "PRICE", "seed", kNow_s).steps;
  EXPECT_GT(steps.size(), 7 * 24U);
  EXPECT_FALSE(steps.back().value);
  day.event.units["PRICE"] = "THERMS";
  EXPECT_EQ(signal_of({day}),
            "event day (): payload PRICE is not followed: its unit is 'THERMS'; allowed: KWH or MWH 0.00:none ");
}

}  // namespace
}  // namespace perseus::openadr
