// The parts of the service, for the files that define it.
//
// Threads: io thread.
#pragma once

#include <functional>
#include <memory>

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
#include "server/work/stored_bytes.h"
#include "server/work/upkeep.h"

namespace perseus::service {

/// The parts in the order of their dependencies. Those with callbacks from executor or store are shared, so that a
/// callback after the service's end finds them gone.
struct Service::Parts {
  Parts(ServiceOptions given, store::Store& the_store, const Clock& the_clock, work::Executor& executor);
  live::JobHooks hooks();
  /// Reads the store, on this thread: for the start.
  Status read(store::Store& from);
  void connect();
  void use(const alerts::AlertReceiver& receiver);

  ServiceOptions options;
  const Clock& clock;
  double opened_s;
  std::function<void()> earlier_wake;
  std::shared_ptr<work::StoreAccess> store;
  std::shared_ptr<plans::Characterizations> characterizations;
  plans::FollowUps follow_ups;
  std::shared_ptr<live::JobCache> jobs;
  std::shared_ptr<work::StoredBytes> stored_bytes;
  std::shared_ptr<work::Upkeep> upkeep;
  views::JobListUpdater list;
  live::JobAccess access;
  std::shared_ptr<views::Subscriptions> subscriptions;
  std::shared_ptr<views::RecentEvents> recent;
  std::shared_ptr<power::LimitChanges> limit_changes;
  std::shared_ptr<plans::StoredProfiles> profiles;
  std::shared_ptr<plans::ProfileUploads> uploads;
  std::shared_ptr<plans::LatencyReplans> latencies;
  std::shared_ptr<plans::ShapeInputs> shapes;
  std::shared_ptr<plans::RankPlans> rank_plans;
  plans::WaitingRanks waiting;
  std::shared_ptr<plans::JobFrontiers> frontiers;
  std::shared_ptr<plans::ProfilingWindows> windows;
  std::shared_ptr<reports::StragglerNotices> stragglers;
  std::shared_ptr<reports::IterationHistory> history;
  reports::IterationReports reports;
  std::shared_ptr<Registrations> registrations;
  JobOperations operations;
  views::JobReads reads;
  JobReactions reactions;
  plans::HeldPlans held_plans;
  std::shared_ptr<power::SitePower> site;
  std::shared_ptr<power::SiteHistory> site_history;
  std::shared_ptr<power::SiteForecasts> forecasts;
  std::shared_ptr<power::SiteAdmissions> admissions;
  reports::EnergyCounters energy;
  alerts::AlertWatch watch;
  std::shared_ptr<alerts::SentAlerts> sent_alerts;
  std::shared_ptr<alerts::AlertWebhook> webhook = std::make_shared<alerts::AlertWebhook>();
  work::Executor& workers;
};

}  // namespace perseus::service
