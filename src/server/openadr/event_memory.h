// The events that a client knows: what a complete list changes, and what "now" means for each event.
//
// Problem: an event that is gone from the list is cancelled, but lists in pages may skip one when another is deleted
//          between two pages, and an update may be unreadable; a limit that is lifted by mistake is the worse error.
// Method:  an absent event counts as gone if its own call does not find it either, and after lists in several pages
//          only the second time in a row. An event whose update cannot be read stays as it was, beside the update,
//          until one can be read; so does one whose update names no interval. An interval that limited power, and does
//          not any more, cannot be read either: a limit ends by its time, its event's absence, or a duration of PT0S.
//          The same holds for what was never seen otherwise (a client that begins anew): events without intervals or
//          payloads, unless they only ask for reports. "Now" is the time of the event's last modification, as far as it
//          lies between the last list and this one; the first list has no lower bound, so that a restart does not begin
//          an event anew. It stays while the event stays the same.
// Cost:    O(events) per list.
// Threads: one.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/openadr/event_json.h"
#include "server/openadr/watt_steps.h"

namespace perseus::openadr {

class EventMemory {
 public:
  /// `settings`: a payload for which the site has no watts limits nothing.
  EventMemory(std::string seed, FollowSettings settings) : seed_(std::move(seed)), settings_(std::move(settings)) {}

  /// The known events that the list lacks and that have not ended, in order of their ids.
  [[nodiscard]] std::vector<std::string> absent_from(const EventList& list, double now_s) const;
  /// `found`: the answers of the calls for absent events; an absent event without an answer stays.
  void take(EventList list, const std::map<std::string, std::optional<GridEvent>>& found, double now_s);
  /// In order of their ids.
  [[nodiscard]] std::vector<SeenEvent> events() const;

 private:
  struct Known {
    SeenEvent seen;
    std::set<int> limiting = {};  ///< ids of its intervals that limit power, or did so
    int absent = 0;               ///< lists in a row
  };
  void learn(GridEvent event, double now_s);
  void mark_lost_intervals(const Known& known, GridEvent& event, double now_s) const;
  void mark_lost_limits(Known& known, GridEvent& event) const;
  [[nodiscard]] double now_of(const GridEvent& event, double now_s) const;

  std::string seed_;
  FollowSettings settings_;
  std::map<std::string, Known> known_;
  double last_list_s_ = -std::numeric_limits<double>::infinity();
};

}  // namespace perseus::openadr
