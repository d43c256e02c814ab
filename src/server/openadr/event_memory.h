// The events that a client knows: what a complete list changes, and what "now" means for each event.
//
// Problem: an event that is gone from the list is cancelled, but lists in pages may skip one when another is deleted
//          between two pages, and an update may be unreadable; a limit that is lifted by mistake is the worse error.
// Method:  an absent event counts as gone if its own call does not find it either, and after lists in several pages
//          only the second time in a row. An event whose update cannot be read stays as it was, beside the update,
//          until one can be read; so does one whose update names no interval. "Now" is the time of the event's last
//          modification, as far as it lies between the last list and this one; the first list has no lower bound, so
//          that a restart does not begin an event anew. It stays while the event stays the same.
// Cost:    O(events) per list.
// Threads: one.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/openadr/event_json.h"
#include "server/openadr/watt_steps.h"

namespace perseus::openadr {

class EventMemory {
 public:
  explicit EventMemory(std::string seed) : seed_(std::move(seed)) {}

  /// The known events that the list lacks and that have not ended, in order of their ids.
  [[nodiscard]] std::vector<std::string> absent_from(const EventList& list, double now_s) const;
  /// `found`: the answers of the calls for absent events; an absent event without an answer stays.
  void take(EventList list, const std::map<std::string, std::optional<GridEvent>>& found, double now_s);
  /// In order of their ids.
  [[nodiscard]] std::vector<SeenEvent> events() const;

 private:
  struct Known {
    SeenEvent seen;
    int absent = 0;  ///< lists in a row
  };
  void learn(GridEvent event, double now_s);
  [[nodiscard]] double now_of(const GridEvent& event, double now_s) const;

  std::string seed_;
  std::map<std::string, Known> known_;
  double last_list_s_ = -std::numeric_limits<double>::infinity();
};

}  // namespace perseus::openadr
