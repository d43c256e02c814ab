// A utility's events as one step function of watts.
//
// Problem: of many events, some in conflict, a site needs one limit for each moment from now on.
// Method:  per kind of limit (limit_spans.h), the event with the highest priority holds; of equal priorities the least
//          limit, which OpenADR leaves open. Limits of several kinds hold together, so the least of them counts. Where
//          no import capacity is limited, the subscribed capacity holds, and without that the configured default.
//          Where a part of an event cannot be read, the least limit that was known holds too, whatever else does: for
//          the time that the part covers, or from now on if that is unknown. What an unreadable update says beside only
//          lowers limits.
// Input:   events with the moment that their "now" means, and what `FollowSettings` says.
// Output:  steps in order of time; the first begins now; neighbors differ. The last one has no end. At most
//          `most_steps` of them: if there are more, the last has the least limit of all that are left out. What events
//          repeat without end is followed for seven to eight days; after that their least limit holds.
// Errors:  none: what cannot be followed is a part of the result.
// Cost:    O(s log s) for s spans, at most 200,000 and a few per event.
// Threads: pure functions.
// Source:  OpenADR 3.1.0 User Guide, sections 7.1 and 8.10.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "server/openadr/limit_spans.h"

namespace perseus::openadr {

/// A version of an event that cannot be read in full.
struct UnreadUpdate {
  GridEvent event;
  double now_means_s = 0;
};

/// An event as this client has it.
struct SeenEvent {
  GridEvent event;         ///< the last version whose parts are known; without intervals if there was none
  double now_means_s = 0;  ///< the start of an event that begins now
  std::optional<UnreadUpdate> update = std::nullopt;  ///< a later version
};

struct WattStep {
  double from_s = 0;
  std::optional<Watts> limit;  ///< none: no limit

  bool operator==(const WattStep&) const = default;
};

struct UnreadEvent {
  std::string id, text;
};

struct FollowedSchedule {
  std::vector<WattStep> steps;
  std::vector<NotFollowed> not_followed;
  std::vector<UnreadEvent> unread;  ///< the first reason of each event of which a limit is not known
};

/// By event of which a limit is not known: the limits that were known for it before.
using KnownLimits = std::map<std::string, std::vector<WattStep>>;

/// `seed`: names this client, so that random shifts stay the same for it and differ from those of others.
FollowedSchedule watt_steps(std::span<const SeenEvent> events, const std::map<std::string, PayloadUnits>& program_units,
                            const FollowSettings& settings, const std::string& seed, double now_s,
                            const KnownLimits& known = {});

/// The least limit between two times, or if there is none, at any time; infinity: none.
double least_limit(const std::vector<WattStep>& steps, double from_s, double to_s);

/// A number from -1 to 1 for an interval with a random start.
double random_shift(const std::string& seed, const std::string& event, std::size_t interval);

/// When the last interval of an event has passed; infinity: never.
double end_of_event(const SeenEvent& seen, const std::string& seed);

/// The steps as they are from a later moment on: those that have passed are left out.
std::vector<WattStep> steps_from(double now_s, std::vector<WattStep> steps);
/// From that moment on, the limits are the same.
bool same_from(double now_s, const std::vector<WattStep>& a, const std::vector<WattStep>& b);

}  // namespace perseus::openadr
