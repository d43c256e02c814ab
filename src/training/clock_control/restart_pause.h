// Pause before an ended helper, or a failed thread, is started again.
//
// Problem: a helper that was killed once, or that gets its permission late, must set clocks again soon; a helper that
//          crashes again and again must not burden the machine or the log.
// Input:   how long each one worked, and whether it gave up a device that does not follow.
// Output:  pauses of `first_s`, twice that, ..., `most_s`; from the beginning after one that worked for `most_s`;
//          `most_s` after one that gave up.
#pragma once

#include <algorithm>

namespace perseus::clock_control {

struct RestartLimits {
  double first_s = 0, most_s = 0;  ///< 0: a helper is not started again
};

class RestartPause {
 public:
  explicit RestartPause(RestartLimits limits) : limits_(limits) {}
  [[nodiscard]] bool never() const { return limits_.most_s <= 0; }
  /// `worked_s`: of the ended helper; 0: it could not even start.
  double after(double worked_s, bool gave_up = false) {
    if (gave_up) return next_s_ = limits_.most_s;
    next_s_ = next_s_ == 0 || worked_s >= limits_.most_s ? limits_.first_s : std::min(2 * next_s_, limits_.most_s);
    return next_s_;
  }

 private:
  RestartLimits limits_;
  double next_s_ = 0;
};

}  // namespace perseus::clock_control
