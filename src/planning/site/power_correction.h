// What jobs and domains draw over what their plans say, from reports and from a meter.
//
// Problem: GPUs draw more or less than profiled. Limits kept by profiles alone are exceeded all day, or waste watts.
// Method:  a job's correction is measured over planned energy of whole iterations under one plan, smoothed, plus two
//          standard errors, within kLeast and kMost. An iteration that a switch cut in two is neither plan's and must
//          not be reported here. A domain's is its meter over what its jobs' corrected plans draw. Both ask for more
//          watts at once, and for less only later: a job after kSureIterations, a meter at most once in kPause and a
//          part of the way. More is kUpBand above what was measured, and less counts from kDownBand on, so that plans
//          do not change with every report.
// Input:   energies and powers above 0. What is not a number, or further from planned than kPlausible, is ignored.
// Output:  factor(): what to multiply planned power with (jobs), or to divide a limit by (meter). Whatever is reported,
//          a job counts as its plan at least; a meter raises a limit by 1 / kLeastMetered at most, and one
//          without readings for kStale by nothing.
// Errors:  none.
// Cost:    O(1).
// Threads: one object, one thread.
// Source:  docs/decisions/0053 and 0055. A server, whose log has medians over iterations, corrects jobs by
//          server/savings/drawn_power.h.
#pragma once

#include <optional>

#include "base/units.h"

namespace perseus::site {

class PowerCorrection {
 public:
  static constexpr double kLeast = 1, kMost = 1.25, kPlausible = 2;
  static constexpr double kSureIterations = 8, kMemory = 20;
  static constexpr double kUpBand = 0.002, kDownBand = 0.01;

  /// Of `iterations` whole iterations under one plan. Returns whether factor() changed.
  bool report(double iterations, Joules measured, Joules planned);
  [[nodiscard]] double factor() const { return factor_; }
  /// Of the mean of the reports, as their scatter says.
  [[nodiscard]] double standard_error() const;

 private:
  double mean_ = 1, variance_ = 0, seen_ = 0;
  double factor_ = 1;
};

class MeterCorrection {
 public:
  MeterCorrection() = default;
  /// With what is known from before: the factor, and when the last reading was taken.
  MeterCorrection(double factor, Seconds read) : read_(read), changed_(read), factor_(factor) {}
  static constexpr double kLeastMetered = 0.95, kMost = 1.25, kPlausible = 2;
  static constexpr double kUpBand = 0.002, kDownBand = 0.01, kPartDown = 0.25;
  static constexpr Seconds kPause{60}, kStale{300};

  /// Means over the same time, during which no plan changed. Returns whether factor() changed.
  bool read(Seconds at, Watts metered, Watts expected);
  [[nodiscard]] double factor(Seconds now) const;
  [[nodiscard]] std::optional<Seconds> last_read() const { return read_; }

 private:
  std::optional<Seconds> read_, changed_;
  double factor_ = 1;
};

}  // namespace perseus::site
