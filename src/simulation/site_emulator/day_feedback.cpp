#include "simulation/site_emulator/day_feedback.h"

#include <utility>

namespace perseus::site_emulator {

DayFeedback::DayFeedback(const SiteDay& day)
    : day_(day), believed_(day), jobs_(day.kind_of.size()), meters_(day.timed.site.domains.size()) {}

std::vector<Watts> DayFeedback::left(std::vector<Watts> limits, Seconds now) const {
  for (std::size_t d = 0; d < limits.size(); ++d) limits[d] = limits[d] / meters_[d].factor(now);
  return limits;
}

void DayFeedback::report(std::size_t job, Seconds end, double iterations, Joules measured, Joules planned) {
  if (day_.feedback.reports) reports_.push_back({job, end, iterations, measured, planned});
}

bool DayFeedback::read_reports(Seconds now) {
  bool changed = false;
  std::vector<Report> later;
  for (const Report& report : reports_) {
    if (report.end + day_.delay.most > now) {
      later.push_back(report);
    } else if (jobs_[report.job].report(report.iterations, report.measured, report.planned)) {
      believe(report.job);
      changed = true;
    }
  }
  reports_ = std::move(later);
  return changed;
}

bool DayFeedback::read_meter(int domain, Seconds now, Watts metered, Watts expected) {
  return meters_[domain].read(now, metered, expected);
}

void DayFeedback::believe(std::size_t job) {
  const double factor = jobs_[job].factor();
  believed_.copies[job] = factor * day_.copies[job];
  const model::SiteJob& planned = day_.timed.site.jobs[job];
  model::SiteJob& corrected = believed_.timed.site.jobs[job];
  corrected.all_max = factor * planned.all_max;
  for (std::size_t k = 0; k < planned.curve.points.size(); ++k) {
    corrected.curve.points[k].power = factor * planned.curve.points[k].power;
  }
}

}  // namespace perseus::site_emulator
