// Keeps the watt limits of a site: grants each running job a mean power, and changes the grants such that no limit is
// exceeded meanwhile.
//
// Problem: limits change, jobs come and go, ranks take a while to follow, and servers crash. docs/power.md, "On a
//          server".
// Input:   the site document; the jobs, with their frontiers, and the versions that their ranks have (HeldPlans).
// Output:  PowerGranted in the log of each job whose grant changes; FollowUps then deploys the plan under it.
//          view(): limits, grants and what they lack.
// Errors:  those of the store.
// Cost:    every kTick_s, O(jobs + their ranks), and a division on the executor. What a job can draw is computed again
//          after each of its events.
// Threads: io thread.
// Source:  docs/decisions/0052.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/live/job_cache.h"
#include "server/plans/planning_options.h"
#include "server/power/limit_changes.h"
#include "server/power/powered_jobs.h"
#include "server/power/reservations.h"
#include "server/power/site_ahead.h"
#include "server/power/site_documents.h"
#include "server/power/site_history.h"
#include "server/power/site_meters.h"
#include "server/power/site_power_view.h"
#include "server/work/store_access.h"

namespace perseus::power {

class SitePower final : public SiteReadings, private SiteDocumentUser {
 public:
  static constexpr double kTick_s = 1, kReading_s = 10, kAhead_s = 30, kCorrection_s = 60, kSettled_s = 30;
  /// Plans keep the limits of so much time; what falls later is sent ahead. A tick more than the time to the next plan.
  static constexpr double kPlanned_s = 2 * kTick_s;

  SitePower(const plans::PlanningOptions& options, work::StoreAccess& store, live::JobCache& jobs, const Clock& clock,
            work::Due& due, work::Executor& executor, LimitListener& listener, SiteHistory& history);

  /// Its limits apply as soon as they are stored.
  SiteDocuments& documents() { return documents_; }
  LimitChanges& limit_changes() { return limit_changes_; }
  SiteMeters& meters() { return meters_; }
  Reservations& reservations() { return reservations_; }
  Result<SitePowerView> view();
  /// See site_meters.h. not_found: there is no site.
  void take_readings(std::vector<jobs::MeterReading> readings, work::Done<Ok> done);
  std::optional<SitePowerView> allocated_now() override;
  /// One job under the limits of the document; nothing without a document, or for a job that has ended.
  std::optional<jobs::JobView::SitePart> job_now(const std::string& job);
  /// The running jobs under the limits of now; nothing without a document, or while a job is being read.
  std::optional<PoweredSite> jobs_now();
  /// The same with these reservations instead of the stored ones.
  std::optional<FoundJobs> jobs_with(const std::vector<jobs::Reservation>& reservations);
  /// Events of a job may change the allocation.
  void noticed(const live::LiveJob& live);

 private:
  [[nodiscard]] const jobs::SiteDocument* current() const { return documents_.current(); }
  /// There must be a document.
  SitePowerView view_now();
  void go_on(double now_s);
  void changed();
  void document_applied() override;
  void document_changed(const jobs::SiteDocument* before, const jobs::SiteDocument* after,
                        const std::string& by) override {
    limit_changes_.note(before, after, by);
  }
  void allocate(double now_s);
  void release_all();
  /// Compares the meters with what is planned, where no job's power changes.
  void correct_by_meters(double now_s);
  /// The running jobs; nothing while one that may draw power is being read.
  std::optional<FoundJobs> find_jobs(double now_s, const std::vector<jobs::Reservation>& reservations);
  struct Divided {
    PoweredSite site;
    SiteShares shares;
    std::vector<LaterLimits> falls;
    std::optional<BudgetsAhead> ahead;  ///< nothing: what is known of later falls stays
  };
  void divided(std::uint64_t run, Divided result);
  void grant(const PoweredJob& job, Watts watts, double now_s);

  live::JobCache& jobs_;
  const Clock& clock_;
  work::AlarmOf<&SitePower::go_on> alarm_;
  work::Executor& executor_;
  SiteDocuments documents_;
  LimitChanges limit_changes_;
  SiteHistory& history_;
  SiteMeters meters_;
  Reservations reservations_;
  PoweredJobs powered_jobs_;
  double opened_s_;
  bool dividing_ = false;
  std::uint64_t runs_ = 0;  ///< divisions begun; an older one's result is not used
  SiteShares last_;         ///< for the view
  double next_ahead_s_ = 0, next_correction_s_ = 0;
  std::vector<LaterLimits> falls_;                               ///< those of ahead_
  std::map<std::string, std::vector<jobs::LaterBudget>> ahead_;  ///< by job that was looked at: what it draws later
  bool falls_on_ = false;  ///< within a ramp: what it draws from the end of a plan on has begun already
};

}  // namespace perseus::power
