// What a site's limits allow and what its jobs draw, at one time.
//
// Units:   W of accelerators, except `metered`.
// Threads: plain values; site_power_view() io thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/jobs/site_admission.h"
#include "server/jobs/site_document.h"
#include "server/live/job_cache.h"
#include "server/power/site_shares.h"

namespace perseus::power {

class PoweredJobs;
class SiteMeters;

/// Watts kept for a job that has not started yet, see jobs::Reservation.
struct SiteReservationView {
  jobs::Reservation reservation;
  int domain = 0;
  Watts counted;       ///< what it holds beside the jobs of that name
  bool ready = false;  ///< with all that counts, and earlier reservations, it is within the limits
  bool over = false;   ///< with earlier reservations alone it is not
};
struct SiteJobView {
  std::string job, name;
  int domain = 0;
  double least_rate = 0;
  /// "granted", "unlimited", "fixed": its power does not follow grants, or "silent": no rank calls.
  std::string state;
  std::optional<double> silent_since_s;
  int silent_ranks = 0;          ///< that do not call, while others do
  std::string reason;            ///< why it is fixed, and why it is not in the domain that it names
  std::optional<Watts> granted;  ///< nothing: no limit applies
  Watts counted;                 ///< the most that its ranks may draw now
  double correction = 1;         ///< measured over planned power
  std::optional<Watts> reported;
  // See site_speed.h.
  int accelerators = 0;
  double priority = 1;
  Watts planned;                    ///< of the plan in force
  Watts baseline;                   ///< without limits of the site
  std::optional<double> rate;       ///< of the plan in force, over that at full speed; nothing: it is not known
  std::optional<double> rate_lost;  ///< by the limits: 1 - rate over that of the fastest plan without them
  bool operator==(const SiteJobView&) const = default;
};
/// Jobs of one least rate in a domain.
struct TierLoss {
  double least_rate = 0;
  int jobs = 0, accelerators = 0;
  double rate_lost = 0;  ///< mean over accelerators
};
struct SiteDomainView {
  std::string name, parent;
  std::optional<Watts> metered, limit;  ///< now: as metered, and what it leaves for accelerators; nothing: none
  std::optional<double> falls_at_s;     ///< when the metered limit next falls; nothing: never
  Watts falls_to;                       ///< the metered limit then
  std::string limits_unread;            ///< which limit cannot be read; empty: none
  Watts granted, counted, reported, missing;
  Watts reserved;              ///< for jobs that have not started yet
  std::optional<Watts> guard;  ///< that the window of its meter needs; nothing: it has none
  double price = 0;
  std::vector<TierGives> gives;
  std::optional<Watts> meter;          ///< the site meter's last reading
  std::optional<Watts> meter_refused;  ///< a reading since that cannot be true
  // See site_speed.h.
  Watts planned, baseline, planned_of_reporting;  ///< sums over jobs
  double meter_factor = 1;                        ///< that the metered limit is divided by
  Watts metered_planned;                          ///< what is planned, as a meter would read it
  Watts metered_baseline;                         ///< the baseline as a meter would read it
  Watts most_metered;  ///< with all accelerators at maximum clock, as a meter would read it, or the greatest limit
  std::vector<TierLoss> tiers;  ///< by least rate
};
struct SitePowerView {
  double now_s = 0;
  model::SiteObjective objective{};
  double weight = 0;  ///< of all jobs: prices are about their sum, see price_pct_per_kw()
  std::vector<SiteDomainView> domains;
  std::vector<SiteJobView> jobs;
  std::vector<SiteReservationView> reservations;
  int unread_jobs = 0;  ///< running ones that this server has not read: they do not count yet
};

class SiteReadings {
 public:
  /// What the allocation has led to; nothing before the first division.
  virtual std::optional<SitePowerView> allocated_now() = 0;

 protected:
  ~SiteReadings() = default;
};

/// A price as what one more kW would bring, in percent: of the mean slowdown or of the throughput of jobs with that
/// weight in sum, or of the slowest job's rate; 0 without jobs.
double price_pct_per_kw(model::SiteObjective objective, double price, double weight);

SiteJobView site_job_view(const jobs::SiteDocument& document, PoweredJobs& powered_jobs, const live::LiveJob& live,
                          double now_s);
/// `shares`: of the last division by this server; prices and missing watts come from it.
SitePowerView site_power_view(const jobs::SiteDocument& document, PoweredJobs& powered_jobs, live::JobCache& jobs,
                              const SiteMeters& meters, const std::vector<jobs::Reservation>& reservations,
                              double now_s, const SiteShares& shares);

}  // namespace perseus::power
