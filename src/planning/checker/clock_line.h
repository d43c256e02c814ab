// The clock of one rank during changes, and the computations that run meanwhile.
//
// Problem: a requested clock arrives later (planning/model/clock_timeline.h), so a computation may run at several
//          clocks. planning/checker/plan_run.h states the model.
// Input:   requests in order of time; seconds on any common axis.
// Output:  duration and energy of computations.
// Cost:    O(options) per computation.
// Threads: plain value.
// Source:  docs/decisions/0030-clocks-at-device-time.md ("One change at a time").
#pragma once

#include "base/units.h"
#include "planning/model/clock_timeline.h"
#include "planning/model/computation_dag.h"

namespace perseus::checker {

class ClockLine {
 public:
  ClockLine(Megahertz clock, Seconds switch_latency) : clock_(clock), latency_(switch_latency) {}

  void request(Megahertz clock, Seconds when) { clock_.request(clock, when, latency_); }

  struct Run {
    Seconds duration;
    Joules energy;
  };
  /// One computation of that type from `start` to its end, at the clocks in effect meanwhile.
  Run run(const model::ComputationType& type, Seconds start);

  /// Moves the origin of time to `origin`: the next iteration begins.
  void restart_time_at(Seconds origin) { clock_.restart_time_at(origin); }

 private:
  model::ClockTimeline clock_;
  Seconds latency_;
};

}  // namespace perseus::checker
