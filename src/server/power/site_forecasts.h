// Answers requests for the forecast of a site.
//
// Problem: a forecast divides the watts many times, and all dashboards ask for it.
// Input:   the site's limits and jobs, of this server.
// Output:  a forecast that is at most kAge_s old; the same one for all requests meanwhile.
// Errors:  not_found: there is no site. unavailable: its jobs are still being read, or there is no forecast after
//          kPatience_s, because planners or other forecasts come first.
// Cost:    see site_forecast.h, on the executor, as planning: it must not delay the allocation. One at a time, for at
//          most kLongest_s and one step; a forecast that takes longer has only the steps up to then.
// Threads: io thread.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "server/power/site_forecast.h"
#include "server/power/site_power.h"
#include "server/work/executor.h"

namespace perseus::power {

class SiteForecasts {
 public:
  static constexpr double kAge_s = 10, kLongest_s = 10, kPatience_s = 30;

  SiteForecasts(SitePower& site, live::JobCache& jobs, const Clock& clock, work::Due& due, work::Executor& executor)
      : site_(site), jobs_(jobs), clock_(clock), alarm_(due, work::Due::Turn::forecasts, *this), executor_(executor) {}

  void forecast(double hours, work::Done<SiteForecast> done);

 private:
  struct Asked {
    double hours = 0, until_s = 0;
    work::Done<SiteForecast> done;
  };

  void give_up(double now_s);
  void begin(double hours);
  void made(double hours, SiteForecast forecast);

  SitePower& site_;
  live::JobCache& jobs_;
  const Clock& clock_;
  work::AlarmOf<&SiteForecasts::give_up> alarm_;
  work::Executor& executor_;
  std::vector<Asked> asked_;  ///< by until_s
  bool dividing_ = false;
  double hours_ = 0;
  std::string of_;  ///< the document of `last_`, formatted
  SiteForecast last_;
};

}  // namespace perseus::power
