// Judges readings of a meter against limits: the mean over every window that lies within the time of one limit.
//
// Input:   energies since some moment, at equal intervals; for each limit the time from which on it is judged, and its
//          end; the window, rounded up to whole intervals.
// Output:  per limit the number of windows, the greatest mean, and where that window begins. A time shorter than the
//          window has no windows, and proves nothing.
// Errors:  none.
// Cost:    O(readings) per limit.
// Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/units.h"

namespace perseus::replay {

struct EnergyReading {
  double at_s = 0, energy_j = 0;
};

struct JudgedLimit {
  std::string name;
  double from_s = 0, until_s = 0;
  Watts limit;
};

struct WindowVerdict {
  int windows = 0;
  double greatest_w = 0, begins_s = 0;  ///< of the window with the greatest mean
  double mean_w = 0;                    ///< over the whole time
  int over = 0;                         ///< windows above the limit
};

WindowVerdict judge_windows(std::span<const EnergyReading> readings, const JudgedLimit& limit, double window_s);
/// Mean power between the readings nearest to these moments; 0: there is no such time.
double mean_power_w(std::span<const EnergyReading> readings, double from_s, double until_s);

}  // namespace perseus::replay
