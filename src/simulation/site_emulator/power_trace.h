// Power over time in bins of equal width: exact means, from the energies of iterations.
//
// Input:   iterations that repeat, from any time to any time; parts outside of the trace do not count.
// Output:  mean power of each bin, per slot (a domain).
// Cost:    O(bins that the iterations overlap x log changes).
#pragma once

#include <vector>

#include "planning/site/window_guard.h"
#include "simulation/emulator/pipeline_iteration.h"

namespace perseus::site_emulator {

/// Energy of one iteration of one pipeline since its beginning, at any moment of it.
/// Problem: the power of thousands of jobs over a day, without a step per computation: the energy between two moments
///          is a difference of two values of this function.
/// Input:   power above waiting as changes in ascending time; the power of waiting; the iteration's length, pause
///          included. No change is later than that, except in iterations that a raise cuts short during their pause.
/// Output:  J since the beginning, linear between changes.
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

/// `times` equal iterations in a row; the last may be cut short by the end of the run.
struct IterationRun {
  const EnergyOverTime* energy = nullptr;
  double start_s = 0, period_s = 0;
  long times = 1;
  bool one_plan = false;  ///< whole, and no switch cut it in two
};

class PowerTrace {
 public:
  PowerTrace(Seconds from, Seconds width, std::size_t bins, std::size_t slots);

  void add(std::size_t slot, const IterationRun& run, double factor);
  /// Adds the bins of one slot to another.
  void add_slot(std::size_t from, std::size_t to);

  [[nodiscard]] Seconds from() const { return Seconds(from_s_); }
  [[nodiscard]] Seconds width() const { return Seconds(width_s_); }
  [[nodiscard]] std::vector<double> power_w(std::size_t slot) const;

 private:
  double from_s_, width_s_;
  std::vector<std::vector<double>> energy_j_;
};

}  // namespace perseus::site_emulator
