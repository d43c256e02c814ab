// What one event asks for: spans of time with a limit.
//
// Problem: an event says times and values in many ways: starts that are now, relative or absolute, shifted at random;
//          durations by default, by interval, of the calendar or for ever; several values per interval; repetition.
// Input:   an event, the moment that its "now" means, units of its program, a number in [-1, 1] per random shift.
// Output:  spans that end after `now_s`, in no particular order, at most most_spans + one per kind: later ones are
//          replaced by one span with the least of their limits. So is what an event repeats after `repeats_until_s`, or
//          more than once a second.
//          Payloads that cannot be followed, each with the value and what is allowed.
// Errors:  none: what cannot be followed is a part of the result.
// Cost:    O(spans).
// Threads: pure function.
// Source:  OpenADR 3.1.0 User Guide, sections 7.3, 7.4 and 8.10.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "server/openadr/follow_settings.h"
#include "server/openadr/grid_event.h"

namespace perseus::openadr {

/// Priorities compare within a kind; limits of several kinds hold together. A subscription holds only where no
/// `capacity` does.
enum class LimitKind { capacity, setpoint, level, alert, subscription };
inline constexpr int kLimitKinds = 5;

struct LimitSpan {
  double from_s = 0, to_s = 0;  ///< may be infinite
  LimitKind kind = LimitKind::capacity;
  int priority = 0;
  double limit_w = 0;  ///< infinity: none, by a SIMPLE of 0

  bool operator==(const LimitSpan&) const = default;
};

struct NotFollowed {
  std::string key;  ///< the same for every occurrence
  std::string text;
};

struct PlacedInterval {
  double from_s = 0, to_s = 0;
  std::size_t interval = 0;
};
/// When the intervals of an event are, before the event's duration cuts or repeats them; or the reason why that is
/// unknown. `shift`: a number from -1 to 1 for an interval that has a random start.
Result<std::vector<PlacedInterval>> place_intervals(const GridEvent& event, double now_means_s,
                                                    const std::function<double(std::size_t interval)>& shift);

struct SpanWindow {
  double now_s = 0, repeats_until_s = 0;
  std::size_t most_spans = 0;
};
struct EventSpans {
  std::vector<LimitSpan> spans;
  std::vector<NotFollowed> not_followed;
};
EventSpans spans_of(const GridEvent& event, const std::vector<PlacedInterval>& intervals, const PayloadUnits& units,
                    const FollowSettings& settings, const SpanWindow& window);

}  // namespace perseus::openadr
