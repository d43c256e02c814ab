// Tells the clock at which a GPU runs by habit from a disturbance, where that is not the clock that was set.
//
// Problem: some GPUs run steps below the clock that was set, or at a highest clock of their own, always and without a
//          reason of the driver. A plan with that clock gets the same, so it is measured; a clock that another process
//          or heat has set for a while is not.
// Method:  up to 2.5 steps beside the clock that was set is that clock. Further below it, it is a habit from the third
//          time on, if in two thirds of the last cases the same clock ran, or one as far below the one that was set.
// Input:   the clocks of the device, highest first; readings.
// Output:  whether a reading is as expected; the first habit, once, as a line for a log.
// Cost:    O(16) for a reading that deviates.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace perseus::device {

class ClockHabit {
 public:
  explicit ClockHabit(const std::vector<int>& clocks_mhz);
  /// The clock that was set, or a known habit.
  [[nodiscard]] bool is_usual(int set_mhz, int ran_mhz) const;
  /// The same, of a reading while no change was under way: it may make a habit.
  bool learn(int set_mhz, int ran_mhz);
  std::optional<std::string> take_remark();

 private:
  struct Deviation {
    int set_mhz, ran_mhz;
  };
  [[nodiscard]] bool is_habit(int set_mhz, int ran_mhz) const;

  int near_mhz_;
  std::deque<Deviation> deviations_;  ///< the last ones
  bool remarked_ = false;
  std::optional<std::string> remark_;
};

}  // namespace perseus::device
