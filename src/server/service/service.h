// The server without its protocols: jobs, plans, stragglers and policies behind one class that every route calls.
//
// It owns the parts of the service (docs/server.md, "The parts of the service") and forwards each call to one of them.
//
// Repeating a request that names what it creates (a rank, a profile, a job's key) gives the same answer and no second
// effect. An error changes nothing, but a change that the store has not answered in time may still be made.
//
// Problem: see docs/server.md.
// Input:   requests (server/jobs/requests.h).
// Output:  every mutation answers once, after its change is durable in the store; reads answer at once if the data
//          are in memory.
// Errors:  usage/invalid_input: the request; not_found: job, rank, profile, notice; conflict: the job's state does
//          not allow it; too_large: a limit; unavailable: the store.
// Cost:    O(1) per rank and request; looking a plan up O(pipelines + log points); planning runs on the executor.
// Threads: one, the io thread: every call, every answer, every callback. Answers may come inside the call or later.
// Source:  paper sections 3.2 and 5; docs/decisions/0008.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "server/alerts/alert_webhook.h"
#include "server/alerts/alerts.h"
#include "server/jobs/alert.h"
#include "server/jobs/meter_readings.h"
#include "server/jobs/requests.h"
#include "server/jobs/site_document.h"
#include "server/power/site_admissions.h"
#include "server/power/site_forecast.h"
#include "server/power/site_power_view.h"
#include "server/power/site_proof.h"
#include "server/reports/energy_figures.h"
#include "server/savings/job_history.h"
#include "server/service/service_options.h"
#include "server/store/commit_counts.h"
#include "server/views/job_list.h"
#include "server/views/recent_events.h"
#include "server/work/done.h"
#include "server/work/executor.h"
#include "server/work/store_access.h"

namespace perseus::service {

/// For metrics.
struct ServiceCounts {
  std::int64_t jobs_in_memory = 0, waiting_ranks = 0, subscriptions = 0;
  std::int64_t plans_deployed = 0, characterizations = 0, characterizations_failed = 0, characterizing = 0;
  std::int64_t stragglers_in_force = 0;
  struct Planning {
    std::string_view kind;
    std::int64_t waiting = 0, running = 0;
  };
  std::vector<Planning> planning;
  std::int64_t plannings_stopped = 0;
  double planner_s = 0;
  std::vector<std::pair<std::string_view, std::int64_t>> jobs_by_state;  ///< every state
  std::int64_t ranks = 0;                                                ///< of live jobs
  store::CommitCounts commits;
  std::optional<std::int64_t> database_bytes;  ///< nothing: not known yet
  reports::EnergyCounters energy;
  live::ClockCounts clocks;
  std::vector<reports::JobFigures> jobs_in_training;
  std::int64_t ranks_without_control = 0;                   ///< of live jobs
  double profiling_window_age_s = 0;                        ///< longest time since a job got its last profiling window
  std::array<std::int64_t, jobs::kNumAlertKinds> alerts{};  ///< raised, by kind
  alerts::WebhookCounts webhook;
  std::vector<power::SiteDomainView> site;  ///< of its power limits; empty: none
  int site_unread_jobs = 0;
};

class Service {
 public:
  /// Reads the index of all jobs, and no log. The store, clock and executor must outlive the service; work that the
  /// executor finishes after the service's end has no effect.
  static Result<std::unique_ptr<Service>> open(ServiceOptions options, store::Store& store, const Clock& clock,
                                               work::Executor& executor);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service();

  // Named profiles.
  void put_profile(jobs::NamedProfile profile, work::Done<jobs::StoredProfile> done);
  void profile(const std::string& name, work::Done<jobs::NamedProfile> done);
  void profiles(work::Done<std::vector<std::string>> done);
  void remove_profile(const std::string& name, work::Done<Ok> done);
  /// Learned profiles of all teams, see learned_profile.h.
  void learned_profiles(work::Done<std::vector<jobs::LearnedProfile>> done);
  void forget_learned(const std::string& id, work::Done<Ok> done);

  // Lifecycle of a job.
  void register_job(jobs::RegisterJob request, work::Done<jobs::RegisterJobAnswer> done);
  /// The job that the same request has already created under its key. not_found: none; invalid_input: a different
  /// request used the key.
  void registered_before(const jobs::RegisterJob& request, work::Done<jobs::RegisterJobAnswer> done);
  void register_rank(jobs::RegisterRank request, work::Done<jobs::RegisterRankAnswer> done);
  /// A profile for a job without one, or a better one; for all its pipelines, or the given ones.
  void upload_profile(const std::string& job, jobs::NamedProfile profile, std::vector<int> pipelines,
                      work::Done<Ok> done, std::string by = {});
  /// Also reports a profiling window. Without `window`, a report with times of instructions belongs to the last
  /// window handed out.
  void report_iterations(jobs::ReportIterations request, work::Done<jobs::ReportedIterations> done);
  /// No effect for a plan that is no longer in force.
  void drop_plan(jobs::DropPlan request, work::Done<Ok> done);
  /// No effect if the job knows it.
  void see_shape(jobs::SeeShape request, work::Done<Ok> done);
  void finish_job(const std::string& job, work::Done<Ok> done, const std::string& by = {});
  /// Removes the job and its log permanently. conflict while the job is live.
  void remove_job(const std::string& job, work::Done<Ok> done, const std::string& by = {});

  /// Answers when there is a plan of another version. The id cancels the call; it is 0 if the answer has already been
  /// given.
  jobs::WaitId wait_for_plan(jobs::WaitForPlan request, work::Done<jobs::PlanAnswer> done);
  /// False: "unchanged" would renew no lease, since the rank's plan has no budget.
  bool cancel_wait(jobs::WaitId wait);
  /// The same, and the rank's host has closed its connection: see server/live/rank_calls.h.
  void wait_closed(jobs::WaitId wait);
  /// The same of a rank that waits elsewhere. No effect if this server does not know the rank, or another process
  /// holds it.
  void rank_ended(const std::string& job, int rank, std::int64_t epoch);

  void set_straggler(jobs::SetStraggler request, work::Done<jobs::StragglerSet> done);
  void withdraw_straggler(jobs::WithdrawStraggler request, work::Done<Ok> done);
  void set_policy(jobs::SetPolicy request, work::Done<jobs::PolicyChanged> done);
  void clear_policy(jobs::ClearPolicy request, work::Done<Ok> done);
  void set_tier(jobs::SetTier request, work::Done<Ok> done);

  // The site: see server/power/site_power.h.
  void set_site(jobs::SiteDocument document, std::optional<std::string> expected, work::Done<Ok> done,
                const std::string& by = {});
  void clear_site(work::Done<Ok> done, const std::string& by = {});
  /// The document as JSON. not_found: there is no site.
  [[nodiscard]] Result<std::string> site() const;
  Result<power::SitePowerView> site_power();
  /// See service/site_meters.h. not_found: there is no site.
  void take_meter_readings(std::vector<jobs::MeterReading> readings, work::Done<Ok> done);
  [[nodiscard]] bool has_site() const;
  /// Of the present site.
  [[nodiscard]] bool has_domain(std::string_view name) const;
  /// See service/site_admissions.h.
  void admit(jobs::AdmissionRequest request, work::Done<power::Admission> done);
  void release_admission(const std::string& job, work::Done<Ok> done, const std::string& by = {});
  /// See site_history.h and site_forecasts.h.
  void site_proof(const power::SiteProofQuery& query, work::Done<power::SiteProof> done);
  void site_forecast(double hours, work::Done<power::SiteForecast> done);

  // Reads.
  /// All jobs with their committed changes. The row of a live job has the reports that are not in its log yet
  /// since the last event or refresh_row().
  [[nodiscard]] const views::JobList& job_list();
  void refresh_row(const std::string& job);
  /// The token that registered the job, from the index; empty: none. Nothing: not known without its log.
  [[nodiscard]] std::optional<std::string> owner_of(const std::string& job);
  /// Live jobs that the token has registered, including registrations in progress.
  [[nodiscard]] views::JobList::Owned owned_by(const std::string& token);
  /// See server/work/stored_bytes.h.
  [[nodiscard]] std::int64_t stored_bytes_of(const std::string& token) const;
  /// Starts or stops recording changes of the list for take_job_changes().
  void keep_job_changes(bool keep);
  [[nodiscard]] std::vector<views::JobList::Change> take_job_changes();
  /// Called when the list has changed; job_list() is then up to date.
  void on_list_changed(std::function<void()> changed);
  void job(const std::string& job, work::Done<jobs::JobView> done);
  /// not_found while there is none (also while it is being read from the store).
  void frontier(const std::string& job, int pipeline,
                work::Done<std::shared_ptr<const jobs::CharacterizedPipeline>> done);
  void timeline(const std::string& job, int pipeline, work::Done<jobs::TimelineView> done);
  void ranks(jobs::RankQuery of, work::Done<jobs::RankPage> to);
  void hosts(jobs::HostQuery of, work::Done<jobs::HostPage> to);
  /// Measured iterations against the plan over time, see server/reports/iteration_history.h.
  void history(const savings::HistoryQuery& query, work::Done<savings::HistoryView> done);
  [[nodiscard]] ServiceCounts counts() const;
  [[nodiscard]] const alerts::Alerts& alerts() const;
  /// The last known state. Starts a new check, for the next caller.
  [[nodiscard]] work::StoreHealth store_health();

  /// Every event of the job after that sequence, past ones first, each once and in order, until unsubscribed. `after`
  /// beyond the last event (or -1): from now on. `done` is called before the first event. A long past comes in parts,
  /// see kPartOver.
  void subscribe(const std::string& job, std::int64_t after, std::function<void(const jobs::JobEvent&)> on,
                 work::Done<jobs::SubscriptionId> done);
  /// Events of all jobs from now on.
  jobs::SubscriptionId subscribe_all(std::function<void(const jobs::JobEvent&)> on);
  void unsubscribe(jobs::SubscriptionId subscription);
  /// The last events of all jobs, see server/views/recent_events.h.
  void recent_events(views::RecentEvents::Query query, work::Done<views::RecentEvents::Page> done);

  // Time.
  /// Performs what time has made due. Call it when next_wake() has passed, or at any time.
  void tick();
  /// The time at which tick() next has work.
  [[nodiscard]] std::optional<double> next_wake() const;

  /// Applies these options from now on: idle_expiry_s, keep_finished_s, keep_finished_bytes, keep_unused_s, max_ranks,
  /// slowdown, planning_budget_s, planner_s_per_owner, profiling_tolerance_pct, profiling_iterations,
  /// profiling_slowdown_pct, profiling_worst_slowdown_pct, alert_after_s and alert_receiver. The other options stay.
  void set_limits(const ServiceOptions& options);

  /// For an orderly shutdown: answers every parked wait and every later wait or report with `unavailable`, and writes
  /// the ranks' reports to the store. Calls `kept` once that is durable, or with the error of the store. From now on,
  /// store calls have `store_answers_s` each.
  void drain(double store_answers_s, work::Done<Ok> kept = {});
  /// True if a thread would delay the end of the process: one that waits for a store, or for the name of the receiver
  /// of alerts, cannot be ended.
  [[nodiscard]] bool has_busy_thread() const;
  /// The service's access to the store, for other work of the io thread.
  [[nodiscard]] work::StoreAccess& store_access();
  /// What it runs comes back while the service exists.
  [[nodiscard]] work::Executor& executor();

 private:
  struct Parts;
  explicit Service(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace perseus::service
