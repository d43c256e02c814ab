// A cluster's power over one iteration that repeats, and figures of its effect on a power grid.
//
// Problem: training draws power in step: all pipelines compute, wait and synchronize together.
// Input:   the iteration's length and its power changes with their times.
// Output:  mean power in equal bins (a power of two of them, at most 1/160 s long each unless that were over 2^20),
//          which preserve the energy exactly; from them
//          highest, lowest: of the bins
//          ramp:            largest difference of two neighboring means over 0.1 s, per second, across the repetition
//          band:            mean square of the part with frequencies from 0.1 to 20 Hz: the iteration repeats, so its
//                           power is a Fourier series, computed by a fast Fourier transform of the bins and corrected
//                           for the averaging within bins; rms = sqrt(band), and "energy in the band" of a signal is
//                           band * time, in W^2 s
//          variance:        the same of all frequencies, from the bins
// Errors:  none; changes outside the iteration count at its ends.
// Cost:    O(changes + bins log bins).
// Threads: one series, one thread.
// Source:  docs/decisions/0009; Choukse et al. 2025 on power stabilization.
#pragma once

#include <span>
#include <vector>

#include "base/units.h"
#include "simulation/emulator/pipeline_iteration.h"

namespace perseus::emulator {

inline constexpr double kBandLow_hz = 0.1;
inline constexpr double kBandHigh_hz = 20;
inline constexpr Seconds kRampWindow = Seconds(0.1);

struct PowerFigures {
  Watts mean;
  Watts highest;
  Watts lowest;
  double ramp_w_per_s = 0;
  double band_w2 = 0;      ///< mean square within the band
  double variance_w2 = 0;  ///< mean square of the whole alternating part
  Watts first;             ///< mean of the first and last 0.1 s
  Watts last;
};

class PowerSeries {
 public:
  explicit PowerSeries(Seconds length);

  /// Adds a change that lasts from `time` to the end of the iteration.
  void change(Seconds time, Watts by);
  /// Adds `times` pipelines whose iterations begin at `start`.
  void add(std::span<const PowerChange> changes, Seconds start, double times);

  /// Mean power of each bin.
  [[nodiscard]] std::vector<double> bins_w() const;
  [[nodiscard]] Seconds bin_width() const { return Seconds(width_s_); }

 private:
  double width_s_;
  std::vector<double> changes_w_;  ///< change of a bin's mean from the bin before it
};

/// Figures of 2^k bins of `width`.
PowerFigures power_figures(const std::vector<double>& bins_w, Seconds width);

/// Mean square at each multiple of 1/length, index 0 being the mean's (0 here): bins_w.size() / 2 values, corrected
/// for the averaging within bins. 2^k bins.
std::vector<double> power_spectrum_w2(const std::vector<double>& bins_w);

}  // namespace perseus::emulator
