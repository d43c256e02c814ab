// Energy of one iteration of one pipeline since its beginning, at any moment of it.
//
// Problem: the power of thousands of jobs over a day, without a step per computation: the energy between two moments is
//          a difference of two values of this function.
// Input:   power above waiting as changes in ascending time; the power of waiting; the iteration's length, pause
//          included. No change is later than that, except in iterations that a raise cuts short during their pause.
// Output:  J since the beginning, linear between changes.
// Cost:    O(log changes) a value.
// Threads: const methods are safe concurrently.
#pragma once

#include <vector>

#include "planning/site/window_guard.h"
#include "simulation/emulator/pipeline_iteration.h"

namespace perseus::site_emulator {

class EnergyOverTime {
 public:
  EnergyOverTime(const std::vector<emulator::PowerChange>& above_waiting, Watts waiting, Seconds length);

  [[nodiscard]] double at_s(double time_s) const;
  [[nodiscard]] double length_s() const { return length_s_; }
  [[nodiscard]] double whole_j() const { return whole_j_; }
  [[nodiscard]] Watts mean() const { return Watts(whole_j_ / length_s_); }
  [[nodiscard]] std::vector<site::PowerStep> steps() const;

 private:
  std::vector<double> time_s_, power_w_, energy_j_;
  double length_s_, whole_j_ = 0;
};

}  // namespace perseus::site_emulator
