// The clock of one rank while it changes, and how a computation runs meanwhile.
//
// A requested clock arrives later, so a computation may run at several clocks. verify/simulator.h states the model.
//
// Input:   requests in order of time; seconds on any common axis.
// Output:  duration and energy of computations.
// Cost:    O(options) per computation.
// Threads: plain value.
// Source:  docs/decisions/0030-clocks-at-device-time.md ("One change at a time").
#pragma once

#include <deque>

#include "base/units.h"
#include "model/computation_dag.h"

namespace perseus {

class ClockLine {
 public:
  ClockLine(Megahertz clock, Seconds switch_latency) : now_(clock), requested_(clock), latency_(switch_latency) {}

  /// Requests `clock` at time `when`, after the change under way; nothing happens if it was requested last.
  void request(Megahertz clock, Seconds when);

  struct Run {
    Seconds duration;
    Joules energy;
  };
  /// One computation of that type from `start` to its end, at the clocks that are here meanwhile.
  Run run(const ComputationType& type, Seconds start);

  /// Moves the origin of time to `origin`: the next iteration begins.
  void restart_time_at(Seconds origin);

 private:
  struct Change {
    Seconds begins, time;  ///< time: when the clock is there
    Megahertz clock;
  };
  Megahertz now_;
  Megahertz requested_;
  Seconds latency_;
  std::deque<Change> changes_;  ///< one after the other; at most the last has not begun
};

}  // namespace perseus
