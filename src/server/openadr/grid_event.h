// An event of a utility, as OpenADR 3 has it, reduced to what limits of power need.
//
// Shape:   the intervals are in the event's order, which is their order in time unless they have starts of their own.
// Units:   starts in seconds since 1970; values in the unit that `units` has for their payload type.
// Threads: plain values.
// Source:  OpenADR 3.1.0, schema event; User Guide, section 7.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/openadr/iso8601.h"

namespace perseus::openadr {

struct EventPeriod {
  bool has_start = false;
  std::optional<double> start_s;  ///< with has_start; none: now
  std::optional<IsoDuration> duration;
  std::optional<IsoDuration> randomize;  ///< the greatest shift of the start, in both directions

  bool operator==(const EventPeriod&) const = default;
};

struct EventPayload {
  std::string type;
  std::vector<std::optional<double>> values;  ///< none: not a number

  bool operator==(const EventPayload&) const = default;
};

struct EventInterval {
  int id = 0;
  EventPeriod period;
  std::vector<EventPayload> payloads;
  std::string unread = {};  ///< why not all payloads can be read; empty: they can

  bool operator==(const EventInterval&) const = default;
};

/// A report that an event asks for; the defaults are OpenADR's.
struct ReportRequest {
  std::string payload_type, units, reading_type;
  std::vector<std::string> targets;
  bool aggregate = false, historical = true;
  int start_interval = -1;  ///< -1: the last one
  int num_intervals = -1;   ///< -1: all
  int frequency = -1;       ///< intervals between reports; -1: num_intervals; 0: when the client chooses
  int repeat = 1;           ///< number of reports; -1: without end
  std::string unreadable;   ///< why the descriptor cannot be read; empty: it can

  bool operator==(const ReportRequest&) const = default;
};

/// The first part of an event that cannot be read, of those that its limits depend on.
struct UnreadPart {
  std::string why;
  bool has_times = false;  ///< all intervals are there: only what they ask for, or of whom, is unknown
  bool may_limit = true;   ///< false: none of its payloads limits power

  bool operator==(const UnreadPart&) const = default;
};

using PayloadUnits = std::map<std::string, std::string>;  ///< by payload type

struct GridEvent {
  std::string id, program, name;
  std::optional<double> modified_s;
  std::optional<int> priority;  ///< 0 is the highest; none: below all
  std::vector<std::string> targets;
  PayloadUnits units;
  EventPeriod period;                   ///< default of the intervals
  std::optional<IsoDuration> duration;  ///< cuts the intervals short, or repeats them
  std::vector<EventInterval> intervals;
  std::vector<ReportRequest> reports;
  std::optional<UnreadPart> unread = std::nullopt;  ///< then `intervals` has those whose times can be read

  bool operator==(const GridEvent&) const = default;
};

struct GridProgram {
  std::string id, name;
  PayloadUnits units;
};

}  // namespace perseus::openadr
