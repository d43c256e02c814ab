// Reads the lists of events and programs that a utility's server answers with.
//
// Input:   JSON from outside; members that are not used here are ignored, null is like a missing member.
// Output:  the events that can be read, and for each other one its id and the reason: one bad event hides no others.
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

struct UnreadableEvent {
  std::string id;  ///< empty: unknown
  std::string why;
};

struct EventList {
  std::vector<GridEvent> events;
  std::vector<UnreadableEvent> unreadable;
  int pages = 1;

  [[nodiscard]] int objects() const { return static_cast<int>(events.size() + unreadable.size()); }
};

Result<EventList> parse_events(std::string_view text, const std::string& name);
Result<GridEvent> parse_event(std::string_view text, const std::string& name);
Result<std::vector<GridProgram>> parse_programs(std::string_view text, const std::string& name);

}  // namespace perseus::openadr
