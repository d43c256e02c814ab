// Looks at the jobs in memory for alerts, a few at a time, and at the domains of the site.
//
// Problem: thousands of jobs must not occupy the I/O thread at once.
// Input:   the jobs in memory; the time. A job that this server has not read is not looked at. The domains of the
//          site.
// Output:  alerts(): see server/alerts/alerts.h.
// Errors:  none.
// Cost:    O(pipelines and ranks without clock control) per job; kJobsAtOnce of them per call, every job once in a
//          round.
// Threads: io thread.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "base/clock.h"
#include "server/alerts/alerts.h"
#include "server/live/job_cache.h"
#include "server/power/site_power_view.h"

namespace perseus::alerts {

/// Of a live job.
AlertFacts alert_facts(const live::LiveJob& live);
AlertFacts alert_facts(const power::SiteDomainView& domain);

class AlertWatch {
 public:
  static constexpr std::size_t kJobsAtOnce = 128;

  /// `after_s`: see Alerts; 0: no alerts.
  AlertWatch(const live::JobCache& jobs, power::SiteReadings& site, const Clock& clock, work::Due& due, double after_s,
             AlertSink& sink);
  void set_after(double after_s);

  [[nodiscard]] const Alerts& alerts() const { return alerts_; }
  [[nodiscard]] Alerts& alerts() { return alerts_; }

 private:
  void go_on(double now_s);
  void begin_round(double now_s);
  void look(const std::string& job, double now_s);
  void look_at_site(double now_s);

  const live::JobCache& jobs_;
  power::SiteReadings& site_;
  const Clock& clock_;
  work::AlarmOf<&AlertWatch::go_on> alarm_;
  Alerts alerts_;
  std::deque<std::string> left_;       ///< of this round
  std::map<std::string, Watts> held_;  ///< by silent job: what it counts as
};

}  // namespace perseus::alerts
