// The running jobs of a server as its site's limits see them: what each can draw, may draw and counts as.
//
// Problem: what a job can draw is costly to compute and changes only with its events; what it counts as changes with
//          every confirmation of its ranks.
// Input:   the site document, the jobs with their frontiers and logs.
// Output:  per job a PoweredJob; the limits that the document leaves for accelerators at a time.
// Errors:  none.
// Cost:    O(jobs + their ranks); what a job can draw is computed again after each of its events.
// Threads: io thread.
// Source:  docs/decisions/0052.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "server/jobs/site_admission.h"
#include "server/jobs/site_document.h"
#include "server/live/job_cache.h"
#include "server/plans/planning_options.h"
#include "server/power/site_power_view.h"

namespace perseus::power {

/// Per reservation: what jobs of its name and team in its domain do not count for already. `used`: all ranks of such a
/// job have registered, one of them since it got its watts.
struct ReservedPower {
  int domain = 0;
  Watts counted;
  int accelerators = 0;
  bool used = false;
  std::string moved = {};  ///< a job that has used it in another domain
};

/// What reservations count as beside the jobs that run already (decision 56): a reservation holds the watts of a job
/// until it has started; from then on the job itself counts.
class ReservedPowers {
 public:
  ReservedPowers(const jobs::SiteDocument& document, std::span<const jobs::Reservation> reservations);

  /// False: watts are reserved under its name, but not for its team.
  bool take(const jobs::Job& job, int domain, Watts counted);
  [[nodiscard]] const std::vector<ReservedPower>& all() const { return all_; }

 private:
  std::span<const jobs::Reservation> reservations_;
  std::multimap<std::string, std::size_t> of_name_;
  std::vector<ReservedPower> all_;
};

struct FoundJobs {
  PoweredSite site;
  std::vector<int> accelerators;  ///< per domain, of the jobs directly in it
  std::vector<std::string> used;  ///< reservations whose jobs have started
  /// Of these, where they have started in another domain: its name.
  std::map<std::string, std::string> moved;
  bool reading = false;     ///< a job that may draw power is still being read, or a frontier of it
  bool lacks_jobs = false;  ///< a running job has not been read: it does not count
};

class PoweredJobs {
 public:
  PoweredJobs(const plans::PlanningOptions& options, live::JobCache& jobs) : options_(options), jobs_(jobs) {}

  /// There is another document.
  void forget() { known_.clear(); }
  void forget_removed();
  /// The running jobs under the limits from `now_s` until `until_s`; those not in memory are read. After them, as jobs
  /// without an id, the reservations that no job has used yet.
  FoundJobs find(const jobs::SiteDocument& document, double now_s, double until_s,
                 const std::vector<double>& meter_factors, const std::vector<jobs::Reservation>& reservations);
  /// Running jobs that this server has not read, or that a later version has changed: what they draw is not known.
  [[nodiscard]] std::vector<std::string> unread() const;
  PoweredJob powered(const jobs::SiteDocument& document, const live::LiveJob& live, double now_s,
                     SiteJobView* shown = nullptr);

 private:
  /// What a job's state at one moment makes of it.
  struct KnownJob {
    std::int64_t sequence = -1;
    int times_read = 0;
    jobs::TierHere tier;
    double until_s = 0;  ///< a policy changes
    double correction = 1;
    std::optional<Watts> reported;
    std::string bounded;  ///< why it counts as another power than its profile's; empty: it does not
    std::shared_ptr<const policies::PowerChoices> choices;
    std::shared_ptr<const JobSwing> swing;
  };

  KnownJob& known(const jobs::SiteDocument& document, const live::LiveJob& live, double now_s);

  const plans::PlanningOptions& options_;
  live::JobCache& jobs_;
  std::map<std::string, KnownJob> known_;           ///< by job, under this document
  std::map<std::string, std::string> reserved_in_;  ///< by job that has started elsewhere: the domain
  std::set<std::string> of_another_team_;  ///< jobs under whose name, but not for whose team, watts are reserved
  SwingLibrary swings_;
};

/// The least between two times of what the limits leave for accelerators; below 0 W: the constants alone exceed a
/// limit. Per domain: `accelerators` of the jobs directly in it; `meter_factors`, see service/site_meters.h.
std::vector<Watts> limits_between(const jobs::SiteDocument& document, double from_s, double until_s,
                                  const std::vector<int>& accelerators, const std::vector<double>& meter_factors);

}  // namespace perseus::power
