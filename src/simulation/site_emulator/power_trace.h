// Power over time in bins of equal width: exact means, from the energies of iterations.
//
// Input:   iterations that repeat, from any time to any time; parts outside of the trace do not count.
// Output:  mean power of each bin, per slot (a domain).
// Cost:    O(bins that the iterations overlap x log changes).
// Threads: one object, one thread.
#pragma once

#include <vector>

#include "simulation/site_emulator/energy_over_time.h"

namespace perseus::site_emulator {

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
