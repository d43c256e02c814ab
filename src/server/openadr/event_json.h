// Reads the lists of events and programs that a utility's server answers with.
//
// Input:   JSON from outside; members that are not used here are ignored, null is like a missing member.
// Output:  the events. What cannot be read of one is a part of it: one bad event hides no others, one bad interval no
//          other interval. An id that cannot be read is empty. The time of modification is none, and reports are left
//          out, if they cannot be read: no limit depends on them.
// Errors:  invalid_input with the name, if the text is not JSON, not a list, or has more objects than allowed.
// Cost:    linear. At most kMostObjects objects, kMostIntervals intervals and kMostValues values per event.
// Threads: pure functions.
// Source:  OpenADR 3.1.0.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/openadr/grid_event.h"

namespace perseus::openadr {

inline constexpr int kMostObjects = 1000;  ///< in one answer
inline constexpr int kMostIntervals = 10'000;
inline constexpr int kMostValues = 20'000;     ///< in all intervals of an event
inline constexpr std::size_t kMostText = 128;  ///< bytes of an id, a name or a type, as in the schemas

struct EventList {
  std::vector<GridEvent> events;
  int pages = 1;
};

Result<std::vector<GridEvent>> parse_events(std::string_view text, const std::string& name);
Result<GridEvent> parse_event(std::string_view text, const std::string& name);
Result<std::vector<GridProgram>> parse_programs(std::string_view text, const std::string& name);

}  // namespace perseus::openadr
