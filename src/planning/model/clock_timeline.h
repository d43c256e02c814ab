// Clock of one GPU over time: a GPU makes one clock change at a time.
//
// Problem: a requested clock arrives one latency after its change begins. A request during a change waits until that
//          change is done; of several waiting requests, the newest counts.
// Input:   requests in order of time; seconds on any common axis.
// Output:  the changes, in order of time.
// Errors:  none.
// Cost:    O(1) per request; memory for each change until forget_before().
// Threads: plain value.
// Source:  docs/decisions/0030-clocks-at-device-time.md ("One change at a time").
#pragma once

#include <deque>

#include "base/units.h"

namespace perseus::model {

class ClockTimeline {
 public:
  struct Change {
    Seconds begins, arrives;
    Megahertz clock;
  };
  explicit ClockTimeline(Megahertz clock) : first_(clock), requested_(clock) {}

  void request(Megahertz clock, Seconds when, Seconds latency);
  /// The clock at that time.
  [[nodiscard]] Megahertz at(Seconds when) const;
  [[nodiscard]] const std::deque<Change>& changes() const { return changes_; }
  /// The first change that arrives after `when`, or changes().end().
  [[nodiscard]] std::deque<Change>::const_iterator next_after(Seconds when) const;
  /// Calls use(clock, from, to) for each part of that interval with a constant clock.
  template <class Use>
  void for_each(Seconds from, Seconds to, Use&& use) const {
    Megahertz clock = at(from);
    for (auto next = next_after(from); from < to; ++next) {
      const bool stays = next == changes_.end() || next->arrives >= to;
      const Seconds until = stays ? to : next->arrives;
      use(clock, from, until);
      if (stays) return;
      clock = next->clock;
      from = until;
    }
  }
  /// Forgets changes that have arrived by then; at() must not be called for an earlier time afterwards.
  void forget_before(Seconds when);
  /// Moves the origin of time to `origin`.
  void restart_time_at(Seconds origin);

 private:
  Megahertz first_;  ///< before the first change
  Megahertz requested_;
  std::deque<Change> changes_;
};

}  // namespace perseus::model
