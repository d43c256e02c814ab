// The server without its protocols: the parts (docs/server.md, "The parts of the service"), the order of their start
// and end, and their time.
//
// Routes call the parts. Repeating a request that names what it creates (a rank, a profile, a job's key) gives the same
// answer and no second effect. An error changes nothing, but a change that the store has not answered in time may still
// be made.
//
// Input:   requests (server/jobs/requests.h).
// Output:  every mutation answers once, after its change is durable in the store; reads answer at once if the data
//          are in memory.
// Errors:  usage/invalid_input: the request; not_found: job, rank, profile, notice; conflict: the job's state does
//          not allow it; too_large: a limit; unavailable: the store.
// Cost:    O(1) per rank and request; looking a plan up O(pipelines + log points); planning runs on the executor.
// Threads: one, the io thread: every call, every answer, every callback. Answers may come inside the call or later.
// Source:  paper sections 3.2 and 5; docs/decisions/0008.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "server/alerts/alert_watch.h"
#include "server/alerts/alert_webhook.h"
#include "server/alerts/sent_alerts.h"
#include "server/plans/characterizations.h"
#include "server/plans/follow_ups.h"
#include "server/plans/held_plans.h"
#include "server/plans/latency_replans.h"
#include "server/power/site_admissions.h"
#include "server/power/site_forecasts.h"
#include "server/power/site_history.h"
#include "server/power/site_power.h"
#include "server/reports/iteration_history.h"
#include "server/reports/iteration_reports.h"
#include "server/service/job_operations.h"
#include "server/service/job_reactions.h"
#include "server/service/registrations.h"
#include "server/service/service_counts.h"
#include "server/service/service_options.h"
#include "server/views/job_changes.h"
#include "server/views/job_reads.h"
#include "server/views/recent_events.h"
#include "server/views/subscriptions.h"
#include "server/work/due.h"
#include "server/work/executor.h"
#include "server/work/stored_bytes.h"
#include "server/work/upkeep.h"

namespace perseus::service {

class Service final : private live::JobHooks, private power::LimitListener, private alerts::AlertSink {
 public:
  /// Reads the index of all jobs, and no log. The store, clock and executor must outlive the service; work that the
  /// executor finishes after the service's end has no effect.
  static Result<std::unique_ptr<Service>> open(ServiceOptions options, store::Store& store, const Clock& clock,
                                               work::Executor& executor);
  ~Service() override;

  void job(const std::string& job, work::Done<jobs::JobView> done);
  /// Live jobs that the token has registered, including registrations in progress.
  [[nodiscard]] views::JobList::Owned owned_by(const std::string& token);
  [[nodiscard]] ServiceCounts counts();
  /// The last known state. Starts a new check, for the next caller.
  [[nodiscard]] work::StoreHealth store_health();

  /// Performs what time has made due. Call it when next_wake() has passed, or at any time.
  void tick();
  /// The time at which tick() next has work.
  [[nodiscard]] std::optional<double> next_wake() const { return due.next(); }

  /// Replaces plans::PlanningLimits, of which a slowdown applies from each job's next plan on, and ServiceLimits.
  void set_limits(const ServiceOptions& options);

  /// For an orderly shutdown: answers every parked wait and every later wait or report with `unavailable`, and writes
  /// the ranks' reports to the store. Calls `kept` once that is durable, or with the error of the store. From now on,
  /// store calls have `store_answers_s` each.
  void drain(double store_answers_s, work::Done<Ok> kept = {});
  /// True if a thread would delay the end of the process: one that waits for a store, or for the name of the receiver
  /// of alerts, cannot be ended.
  [[nodiscard]] bool has_busy_thread() const;

 private:
  Service(ServiceOptions given, store::Store& the_store, const Clock& the_clock, work::Executor& executor);
  /// Reads the store, on this thread: for the start.
  Status read(store::Store& from);
  void use(const alerts::AlertReceiver& receiver);

  std::optional<jobs::EventBody> next_follow_up(live::LiveJob& live, double now_s) override;
  [[nodiscard]] std::optional<double> due_s(const live::LiveJob& live, double now_s) const override;
  void wake(const std::string& id) override;
  [[nodiscard]] std::string summary(const live::LiveJob& live) const override;
  void writing(const live::LiveJob& live, std::int64_t bytes) override;
  void written(const std::vector<live::SequencedEvent>& events) override;
  void committed(live::LiveJob& live, const std::vector<live::SequencedEvent>& events) override;
  void shown(live::LiveJob& live) override;
  void removed(live::LiveJob& live) override;
  void row_changed() override;
  void row_erased(const store::JobIndexRow& gone) override;
  void limit_changed(jobs::JobEvent event) override { recent.add(std::move(event)); }
  void changed(const jobs::Alert& alert) override;

  ServiceOptions options_;
  const Clock& clock_;
  double opened_s_;

 public:
  // The parts in the order of their dependencies. They live as long as the gate, through which every result of the
  // executor and the store comes to them.
  work::Due due;
  work::Gate gate;
  work::StoreAccess store;
  plans::Characterizations characterizations;
  plans::FollowUps follow_ups;
  live::JobCache jobs;
  std::optional<work::StoredBytes> stored_bytes;  ///< this and the next from read() on
  std::optional<work::Upkeep> upkeep;
  views::JobListUpdater list;
  live::JobAccess access;
  views::Subscriptions subscriptions;
  views::RecentEvents recent;
  plans::StoredProfiles profiles;
  plans::ProfileUploads uploads;
  plans::LatencyReplans latencies;
  plans::ShapeInputs shapes;
  plans::RankPlans rank_plans;
  plans::HeldPlans held_plans;
  plans::WaitingRanks waiting;
  plans::JobFrontiers frontiers;
  plans::ProfilingWindows windows;
  reports::StragglerNotices stragglers;
  reports::IterationHistory history;
  reports::IterationReports reports;
  Registrations registrations;
  JobOperations operations;
  views::JobReads reads;
  JobReactions reactions;
  power::SiteHistory site_history;
  power::SitePower site;
  power::SiteForecasts forecasts;
  power::SiteAdmissions admissions;
  reports::EnergyCounters energy;
  alerts::AlertWatch watch;
  std::shared_ptr<alerts::AlertWebhook> webhook = std::make_shared<alerts::AlertWebhook>();
  alerts::SentAlerts sent_alerts;
  views::JobChanges* list_changes = nullptr;  ///< notes changes of `list`
};

}  // namespace perseus::service
