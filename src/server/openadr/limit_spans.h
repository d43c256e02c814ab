// What one event asks for: spans of time with a limit.
//
// Problem: an event says times and values in many ways: starts that are now, relative or absolute, shifted at random;
//          durations by default, by interval, of the calendar or for ever; several values per interval; repetition.
// Input:   an event, the moment that its "now" means, units of its program, a number in [-1, 1] per random shift.
// Output:  spans that end after `now_s`, in no particular order, at most most_spans + one per kind: later ones are
//          replaced by one span with the least of their limits. So is what an event repeats after `repeats_until_s`, or
//          more than once a second.
//          Where a limit cannot be read or used, a span of the kind `kept`.
//          Payloads that are not followed or not read, each with the value and what is allowed.
// Errors:  none: what cannot be followed is a part of the result.
// Cost:    O(spans).
// Threads: pure function.
// Source:  OpenADR 3.1.0 User Guide, sections 7.3, 7.4 and 8.10.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "server/openadr/grid_event.h"

namespace perseus::openadr {

inline constexpr int kLevels = 4;  ///< of the payload SIMPLE, 0 (normal operations) included

/// How a site answers a utility's events: the watts of levels, alerts and baselines that events only name, as a meter
/// of the domain reads them.
struct FollowSettings {
  std::optional<Watts> baseline;                     ///< what DISPATCH_SETPOINT_RELATIVE is relative to
  std::array<std::optional<Watts>, kLevels> levels;  ///< of SIMPLE 1 to 3; [0] is not used
  std::optional<Watts> emergency;                    ///< of ALERT_GRID_EMERGENCY
  std::optional<Watts> default_limit;                ///< where neither a limit nor a subscription holds
  std::size_t most_steps = 1000;
  std::string signal;  ///< a payload that is followed as a signal (signal_steps.h), not as a limit; empty: none
};

/// Priorities compare within a kind; limits of several kinds hold together. A subscription holds only where no
/// `capacity` does. `kept`: what holds in place of a limit that cannot be read. `signal`: no limit, but a value of
/// signal_steps.h, negative, so that the greatest one holds.
enum class LimitKind { capacity, setpoint, level, alert, subscription, kept, signal };
inline constexpr int kLimitKinds = 7;
/// Types and units count in any case; GridEvent has types in upper case, and units as written.
std::string upper(std::string_view text);
/// Payloads of this type are limits of power.
bool limits_power(std::string_view type);
/// It does, and the site has watts for it.
bool is_followed(std::string_view type, const FollowSettings& settings);

struct LimitSpan {
  double from_s = 0, to_s = 0;  ///< may be infinite
  LimitKind kind = LimitKind::capacity;
  int priority = 0;
  double limit_w = 0;  ///< infinity: none, by a SIMPLE of 0; of the kind `kept`: still unknown

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
  /// Of one of so many events. What repeats without end is followed for seven to eight days.
  SpanWindow(double from_s, std::size_t most, std::size_t events);
  double now_s, repeats_until_s;
  std::size_t most_spans;
};

/// A part of an interval that has one limit.
struct LimitPart {
  double from_s, to_s;
  LimitKind kind;
  double limit_w;
};
/// Several values divide the interval; without an end, the least of them holds throughout.
void add_parts(const PlacedInterval& placed, LimitKind kind, const std::vector<std::optional<double>>& limits,
               std::vector<LimitPart>& parts);
/// The parts of an event, by their starts, as often as it repeats. What cannot be followed of a signal has no value.
std::vector<LimitSpan> repeated(const GridEvent& event, const std::vector<PlacedInterval>& intervals,
                                std::vector<LimitPart> parts, const SpanWindow& window);

struct EventSpans {
  std::vector<LimitSpan> spans;
  std::vector<NotFollowed> not_followed;  ///< it is no limit, or the site has no watts for it
  std::vector<NotFollowed> unread;        ///< a limit that is not known
};
EventSpans spans_of(const GridEvent& event, const std::vector<PlacedInterval>& intervals, const PayloadUnits& units,
                    const FollowSettings& settings, const SpanWindow& window);

/// The limits that hold at one moment of a sweep over time.
class ActiveLimits {
 public:
  void begin(const LimitSpan& span) { of(span.kind).emplace(span.priority, span.limit_w); }
  void end(const LimitSpan& span) {
    auto& limits = of(span.kind);
    limits.erase(limits.find({span.priority, span.limit_w}));
  }
  /// Of the highest priority, the least one; nothing: none of that kind holds.
  [[nodiscard]] std::optional<double> least(LimitKind kind) const {
    const Limits& limits = limits_[static_cast<std::size_t>(kind)];
    return limits.empty() ? std::nullopt : std::optional(limits.begin()->second);
  }

 private:
  using Limits = std::multiset<std::pair<int, double>>;  ///< priority, watts: the first one holds
  Limits& of(LimitKind kind) { return limits_[static_cast<std::size_t>(kind)]; }
  std::array<Limits, kLimitKinds> limits_;
};
/// Calls `visit` now, and each time that a span begins or ends.
void sweep_spans(const std::vector<LimitSpan>& spans, double now_s,
                 const std::function<void(double at_s, const ActiveLimits& active)>& visit);

}  // namespace perseus::openadr
