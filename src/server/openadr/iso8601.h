// Times and durations as OpenADR writes them: RFC 3339 and ISO 8601.
//
// Input:   text from outside.
// Output:  seconds since 1970 (UTC); a duration in months, which have no fixed length, and seconds. The years 0000 and
//          0001 mean now, with or without a time; a duration of 1,000 years or more ("P9999Y") never ends. Seconds, and
//          the colon or the minutes of a time zone, may be missing.
// Errors:  invalid_input with the text and what is allowed. A time without a time zone is an error: hours may be at
//          stake.
// Cost:    O(length), constant.
// Threads: pure functions.
// Source:  OpenADR 3.1.0, schemas dateTime and duration; User Guide, section 7.3.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace perseus::openadr {

inline constexpr double kForever = std::numeric_limits<double>::infinity();
inline constexpr double kSecondsPerDay = 86400;

/// nullopt: now.
Result<std::optional<double>> parse_event_time(std::string_view text);

struct IsoDuration {
  int months = 0;
  double seconds = 0;
  bool never_ends = false;

  [[nodiscard]] bool is_zero() const { return !never_ends && months == 0 && seconds == 0; }
  bool operator==(const IsoDuration&) const = default;
};
/// "PT1H30M", "P1Y2M3D", "P2W"; not negative.
Result<IsoDuration> parse_iso_duration(std::string_view text);

/// The end of a duration that begins at `start_s`: months of the calendar in UTC, a day beyond the end of a month is
/// its last one; infinity if it never ends.
double end_of(double start_s, const IsoDuration& duration);

/// "2026-03-14T09:30:00Z", rounded down to seconds.
std::string time_text(double time_s);

}  // namespace perseus::openadr
