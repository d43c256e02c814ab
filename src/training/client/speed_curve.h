// How long one kind of work takes at each clock, also from runs during which the clock changed.
//
// Problem: a clock arrives some milliseconds after it was asked for, so a computation that follows another at once
// begins at the other's clock; its time is that of no clock. Input: runs, each as the seconds that it spent at each
// clock. Output: how long a run would have taken at one clock alone, with standard deviation. A run is one piece of
// work: the seconds at a clock over the whole time there are the share of it done there, and the shares add up to 1. So
// the time at the clock that it ended with follows from the times at those before, which earlier runs told. Of a clock
// where none ran, neighbours tell: time falls with a power of the clock between a half and one. Errors: none. Cost: a
// look-up per piece. Threads: one. Source: paper section 5 (Profiler).
#pragma once

#include <map>
#include <span>

namespace perseus::client {

struct ClockedTime {
  int clock_mhz = 0;
  double seconds = 0;
};

struct TimeEstimate {
  double time_s = 0;
  double stddev_s = 0;
};

class SpeedCurve {
 public:
  /// That run at `clock_mhz` alone. `moments_stddev_s`: of the moments at which its clocks changed.
  [[nodiscard]] TimeEstimate alone(std::span<const ClockedTime> run, int clock_mhz, double moments_stddev_s) const;
  void learn(int clock_mhz, const TimeEstimate& time);

 private:
  struct Known {
    double weight = 0, time_s = 0;  ///< weight: one over relative variance
  };
  /// Time there, with relative standard deviation; 0: nothing is known at any clock.
  [[nodiscard]] TimeEstimate at(int clock_mhz) const;
  std::map<int, Known> known_;
};

}  // namespace perseus::client
