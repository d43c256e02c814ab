#include "server/openadr/event_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace perseus::openadr {
namespace {

std::set<std::string> ids_of(const EventList& list) {
  std::set<std::string> ids;
  for (const GridEvent& event : list.events) ids.insert(event.id);
  return ids;
}

bool is_cancelled(const GridEvent& event) {
  return (event.duration && event.duration->is_zero()) || (event.period.duration && event.period.duration->is_zero());
}

/// It is not there only for its reports.
bool should_limit(const GridEvent& event) {
  return event.reports.empty() ||
         std::ranges::any_of(event.units, [](const auto& unit) { return limits_power(unit.first); });
}

bool is_over(const GridEvent& event, double now_s) {
  return event.duration && event.period.start_s && end_of(*event.period.start_s, *event.duration) <= now_s;
}

std::string types_of(const EventInterval& interval) {
  std::vector<std::string_view> types;
  for (const EventPayload& payload : interval.payloads) types.push_back(payload.type);
  return fmt::format(" ({})", fmt::join(types, ", "));
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
    if (!id.empty() && !ids.contains(id) && end_of_event(known.seen, seed_) > now_s) absent.push_back(id);
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
    } else if (known->first.empty() || end_of_event(known->second.seen, seed_) <= now_s) {
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
  if (!event.unread) mark_lost_intervals(place->second, event, now_s);
  if (!event.unread) mark_lost_limits(place->second, event);
  if (event.unread) {
    seen.event.id = event.id;
    if (!seen.update || !same_content(seen.update->event, event)) {
      const double begins_s = now_of(event, now_s);
      seen.update = UnreadUpdate{std::move(event), begins_s};
    }
    return;
  }
  seen.update.reset();
  if (is_new || !same_content(seen.event, event)) seen.now_means_s = now_of(event, now_s);
  seen.event = std::move(event);
}

void EventMemory::mark_lost_intervals(const Known& known, GridEvent& event, double now_s) const {
  if (!event.intervals.empty() || is_cancelled(event) || is_over(event, now_s)) return;
  const std::optional<UnreadUpdate>& update = known.seen.update;
  const bool had_some = !known.seen.event.intervals.empty();
  const bool may_limit = !had_some && (update ? update->event.unread->may_limit : should_limit(event));
  if (!had_some && !may_limit) return;
  event.unread = UnreadPart{
      fmt::format("it has no intervals{}; allowed: intervals, or a duration of PT0S", had_some ? " any more" : ""),
      false, may_limit};
}

void EventMemory::mark_lost_limits(Known& known, GridEvent& event) const {
  const auto limits = [&](const EventInterval& interval) {
    return !interval.unread.empty() || std::ranges::any_of(interval.payloads, [&](const EventPayload& payload) {
      return is_followed(payload.type, settings_);
    });
  };
  const std::set<int> before = std::exchange(known.limiting, {});
  if (is_cancelled(event)) return;
  const bool any_limits = std::ranges::any_of(event.intervals, limits);
  const bool is_empty = std::ranges::all_of(event.intervals, [](const auto& one) { return one.payloads.empty(); });
  for (EventInterval& interval : event.intervals) {
    const bool did = before.contains(interval.id) || (!before.empty() && !any_limits);
    const bool should = interval.payloads.empty() && (any_limits || (is_empty && should_limit(event)));
    if (!limits(interval) && (did || should)) {
      interval.unread =
          fmt::format("interval {} {}; allowed: a limit, or a duration of PT0S", interval.id,
                      interval.payloads.empty() ? "has no payloads" : "limits power no more" + types_of(interval));
    }
    if (limits(interval)) known.limiting.insert(interval.id);
  }
}

double EventMemory::now_of(const GridEvent& event, double now_s) const {
  const double earliest_s = std::min(last_list_s_, now_s);
  return event.modified_s ? std::clamp(*event.modified_s, earliest_s, now_s) : now_s;
}

}  // namespace perseus::openadr
