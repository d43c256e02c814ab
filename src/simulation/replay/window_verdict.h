// Judges readings of a meter against a limit that changes: mean power of every window against the mean of the limit.
//
// Input:   energies since some moment, at equal intervals; the limit as points in ascending time, with lines between
//          them (two points of one time: a step), constant before and after; a time; the window, rounded up to whole
//          intervals.
// Output:  the number of windows, and the one that is closest to its limit, or farthest above. A time shorter than
//          the window has no windows, and proves nothing.
// Cost:    O(readings x points).
#pragma once

#include <span>
#include <string>

namespace perseus::replay {

struct EnergyReading {
  double at_s = 0, energy_j = 0;
};

struct LimitPoint {
  double at_s = 0, limit_w = 0;
};

struct JudgedTime {
  std::string name;
  double from_s = 0, until_s = 0;
};

struct WindowVerdict {
  int windows = 0;
  double power_w = 0, limit_w = 0, begins_s = 0;  ///< of the window closest to its limit
  double mean_w = 0;                              ///< power over the whole time
  int over = 0;                                   ///< windows above their limits
};

WindowVerdict judge_windows(std::span<const EnergyReading> readings, std::span<const LimitPoint> limit,
                            const JudgedTime& time, double window_s);
/// 0: there is no limit at that time yet.
double limit_at(std::span<const LimitPoint> limit, double at_s);
/// Mean power between the readings nearest to these moments; 0: there is no such time.
double mean_power_w(std::span<const EnergyReading> readings, double from_s, double until_s);

}  // namespace perseus::replay
