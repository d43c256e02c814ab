#include "server/openadr/event_memory.h"

#include <algorithm>
#include <set>
#include <utility>

namespace perseus::openadr {
namespace {

std::set<std::string> ids_of(const EventList& list) {
  std::set<std::string> ids;
  for (const GridEvent& event : list.events) ids.insert(event.id);
  for (const UnreadableEvent& event : list.unreadable) ids.insert(event.id);
  return ids;
}

bool same_content(const GridEvent& a, GridEvent b) {
  b.modified_s = a.modified_s;
  return a == b;
}

}  // namespace

std::vector<std::string> EventMemory::absent_from(const EventList& list, double now_s) const {
  const std::set<std::string> ids = ids_of(list);
  std::vector<std::string> absent;
  for (const auto& [id, known] : known_) {
    if (!ids.contains(id) && end_of_event(known.seen, seed_) > now_s) absent.push_back(id);
  }
  return absent;
}

void EventMemory::take(EventList list, const std::map<std::string, std::optional<GridEvent>>& found, double now_s) {
  const std::set<std::string> ids = ids_of(list);
  const int absences = list.pages > 1 ? 2 : 1;
  for (auto known = known_.begin(); known != known_.end();) {
    const auto answer = found.find(known->first);
    bool gone = false;
    if (ids.contains(known->first) || (answer != found.end() && answer->second)) {
      known->second.absent = 0;
    } else if (end_of_event(known->second.seen, seed_) <= now_s) {
      gone = true;
    } else if (answer != found.end()) {
      gone = ++known->second.absent >= absences;
    }
    known = gone ? known_.erase(known) : std::next(known);
  }
  for (GridEvent& event : list.events) learn(std::move(event), now_s);
  for (const auto& [id, event] : found) {
    if (event && event->id == id) learn(*event, now_s);
  }
  last_list_s_ = now_s;
}

std::vector<SeenEvent> EventMemory::events() const {
  std::vector<SeenEvent> events;
  events.reserve(known_.size());
  for (const auto& [id, known] : known_) events.push_back(known.seen);
  return events;
}

void EventMemory::learn(GridEvent event, double now_s) {
  const auto [place, is_new] = known_.try_emplace(event.id);
  SeenEvent& seen = place->second.seen;
  if (is_new || !same_content(seen.event, event)) {
    const double earliest_s = std::min(last_list_s_, now_s);
    seen.now_means_s = event.modified_s ? std::clamp(*event.modified_s, earliest_s, now_s) : now_s;
  }
  seen.event = std::move(event);
}

}  // namespace perseus::openadr
