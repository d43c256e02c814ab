// The closed loop of an emulated day: what jobs and meters report, and the day as it is believed then.
//
// Model:   every kTick the reports that have arrived by then are read: of iterations that ended the longest delay of a
//          grant before. Meters are read every kReading while no plan changes: the mean over that time is compared with
//          what the believed plans draw. Reports and meters have no noise of their own.
// Input:   a valid day, which must outlive the object.
// Output:  believed(): the day with the powers of its jobs corrected (planning/site/power_correction.h); `left`: limits
//          corrected by the meters.
// Cost:    O(jobs) a tick.
#pragma once

#include <vector>

#include "planning/site/power_correction.h"
#include "simulation/site_emulator/site_day.h"

namespace perseus::site_emulator {

class DayFeedback {
 public:
  static constexpr Seconds kTick{10}, kReading{30};

  explicit DayFeedback(const SiteDay& day);

  [[nodiscard]] bool is_closed() const { return day_.feedback.reports || day_.feedback.meter; }
  [[nodiscard]] const SiteDay& believed() const { return believed_; }
  [[nodiscard]] std::vector<Watts> left(std::vector<Watts> limits, Seconds now) const;

  /// Iterations under one plan that ended by then.
  void report(std::size_t job, Seconds end, double iterations, Joules measured, Joules planned);
  /// Returns whether a job is believed to draw something else than before.
  bool read_reports(Seconds now);
  /// Means of a domain since the last reading.
  bool read_meter(int domain, Seconds now, Watts metered, Watts expected);

 private:
  struct Report {
    std::size_t job;
    Seconds end;
    double iterations;
    Joules measured, planned;
  };
  void believe(std::size_t job);

  const SiteDay& day_;
  SiteDay believed_;
  std::vector<Report> reports_;  ///< on their way
  std::vector<site::PowerCorrection> jobs_;
  std::vector<site::MeterCorrection> meters_;  ///< per domain
};

}  // namespace perseus::site_emulator
