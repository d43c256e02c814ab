// Prices or emissions of a utility's events as one step function of time.
//
// Problem: like limits (watt_steps.h), values come from many events, repeat, and may contradict each other; other than
//          limits, they may be negative, and there may be times without any.
// Method:  the event with the highest priority holds; of equal priorities the greatest value, which OpenADR leaves
//          open.
// Input:   events with the moment that their "now" means; the payload, PRICE or GHG.
// Output:  values per kWh (in the event's currency, or g) in order of time; the first step begins now, neighbors
//          differ, the last one has no end. Events that repeat are followed for seven to eight days; after that, and
//          after kMostSignalSteps steps, no value is known. Several values divide their interval; if it has no end, the
//          greatest of them holds.
// Errors:  none: what cannot be followed is a part of the result, once per event.
// Cost:    O(s log s) for s intervals within these days, at most kMostSignalSpans.
// Threads: pure functions.
// Source:  OpenADR 3.1.0 User Guide, sections 6.5, 7.3 and 7.4.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/openadr/watt_steps.h"

namespace perseus::openadr {

inline constexpr std::size_t kMostSignalSpans = 100'000, kMostSignalSteps = 2000;

struct SignalStep {
  double from_s = 0;
  std::optional<double> value;  ///< none: no event says it

  bool operator==(const SignalStep&) const = default;
};

struct FollowedSignal {
  std::vector<SignalStep> steps;
  std::vector<NotFollowed> not_followed;
};

FollowedSignal signal_steps(std::span<const SeenEvent> events, const std::map<std::string, PayloadUnits>& program_units,
                            const std::string& payload, const std::string& seed, double now_s);

}  // namespace perseus::openadr
