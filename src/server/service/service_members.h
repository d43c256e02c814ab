// The parts of the service, for the files that define it.
//
// Threads: io thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "server/alerts/alert_watch.h"
#include "server/alerts/sent_alerts.h"
#include "server/plans/characterizations.h"
#include "server/plans/follow_ups.h"
#include "server/plans/held_plans.h"
#include "server/power/limit_changes.h"
#include "server/power/site_admissions.h"
#include "server/power/site_forecasts.h"
#include "server/power/site_history.h"
#include "server/power/site_power.h"
#include "server/reports/iteration_history.h"
#include "server/reports/iteration_reports.h"
#include "server/service/job_operations.h"
#include "server/service/job_reactions.h"
#include "server/service/registrations.h"
#include "server/service/service.h"
#include "server/views/job_reads.h"
#include "server/work/gate.h"
#include "server/work/stored_bytes.h"
#include "server/work/upkeep.h"

namespace perseus::service {

/// The parts in the order of their dependencies. They live as long as the gate, through which every result of the
/// executor and the store comes to them.
struct Service::Parts final : live::JobHooks {
  Parts(ServiceOptions given, store::Store& the_store, const Clock& the_clock, work::Executor& executor);
  /// Reads the store, on this thread: for the start.
  Status read(store::Store& from);
  void connect();
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

  ServiceOptions options;
  const Clock& clock;
  double opened_s;
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
  power::LimitChanges limit_changes;
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
  power::SitePower site;
  power::SiteHistory site_history;
  power::SiteForecasts forecasts;
  power::SiteAdmissions admissions;
  reports::EnergyCounters energy;
  alerts::AlertWatch watch;
  alerts::SentAlerts sent_alerts;
  std::shared_ptr<alerts::AlertWebhook> webhook = std::make_shared<alerts::AlertWebhook>();
};

}  // namespace perseus::service
