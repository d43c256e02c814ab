#include "planning/model/clock_timeline.h"

#include <algorithm>

namespace perseus::model {

void ClockTimeline::request(Megahertz clock, Seconds when, Seconds latency) {
  if (clock == requested_) return;
  requested_ = clock;
  // A change that has begun completes; a request that waits for it is dropped.
  while (!changes_.empty() && changes_.back().begins > when) changes_.pop_back();
  if (clock == (changes_.empty() ? first_ : changes_.back().clock)) return;
  const Seconds begins = changes_.empty() ? when : std::max(when, changes_.back().arrives);
  changes_.push_back({begins, begins + latency, clock});
}

std::deque<ClockTimeline::Change>::const_iterator ClockTimeline::next_after(Seconds when) const {
  return std::ranges::upper_bound(changes_, when, {}, &Change::arrives);
}

Megahertz ClockTimeline::at(Seconds when) const {
  const auto next = next_after(when);
  return next == changes_.begin() ? first_ : (next - 1)->clock;
}

void ClockTimeline::forget_before(Seconds when) {
  while (!changes_.empty() && changes_.front().arrives <= when) {
    first_ = changes_.front().clock;
    changes_.pop_front();
  }
}

void ClockTimeline::restart_time_at(Seconds origin) {
  for (Change& change : changes_) {
    change.begins -= origin;
    change.arrives -= origin;
  }
}

}  // namespace perseus::model
