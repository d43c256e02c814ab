// Time of one kind of work at each clock, estimated also from runs during which the clock changed.
//
// A run is one piece of work: the seconds at a clock divided by the total time at that clock are the share of the
// work done there, and the shares add up to 1. So the time at the final clock follows from the times at the clocks
// before it, which earlier runs provide. For a clock without runs, neighbors provide an estimate: time falls with a
// power of the clock between a half and one.
//
// Problem: a clock arrives some milliseconds after its request, so a computation that directly follows another begins
//          at the other's clock; its time belongs to no single clock.
// Input:   runs, each as the seconds that it spent at each clock.
// Output:  the time of a run at one clock alone, with standard deviation.
// Cost:    a look-up per piece.
// Source:  paper section 5 (Profiler).
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
  /// Time of that run at `clock_mhz` alone. `moments_stddev_s`: of the moments at which its clocks changed.
  [[nodiscard]] TimeEstimate alone(std::span<const ClockedTime> run, int clock_mhz, double moments_stddev_s) const;
  void learn(int clock_mhz, const TimeEstimate& time);

 private:
  struct Known {
    double weight = 0, time_s = 0;  ///< weight: one over relative variance
  };
  /// Time there, with relative standard deviation; 0: not known at any clock.
  [[nodiscard]] TimeEstimate at(int clock_mhz) const;
  std::map<int, Known> known_;
};

}  // namespace perseus::client
