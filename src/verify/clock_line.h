// The clock of one rank while requests are under way: what it is now, and how a computation runs while it changes.
//
// Problem: a requested clock arrives later, so that a computation may run at several clocks. The model is stated in
// verify/simulator.h. Input/output: seconds on any common axis. Cost: O(requests under way + options) per computation.
// Threads: plain value. Source: ../docs/decisions; the reference on what real runs add to the DAG.
#pragma once

#include <deque>

#include "base/units.h"
#include "model/computation_dag.h"

namespace perseus {

class ClockLine {
 public:
  ClockLine(Megahertz clock, Seconds switch_latency) : now_(clock), requested_(clock), latency_(switch_latency) {}

  /// Asks for `clock` at time `when`; nothing happens if it was the last one asked for.
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
  struct Arrival {
    Seconds time;
    Megahertz clock;
  };
  Megahertz now_;
  Megahertz requested_;
  Seconds latency_;
  std::deque<Arrival> under_way_;  ///< by increasing time
};

}  // namespace perseus
