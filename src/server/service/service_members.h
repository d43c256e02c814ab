// The parts of the service, for the files that define it.
//
// Threads: io thread.
#pragma once

#include <functional>
#include <memory>

#include "server/service/alert_watch.h"
#include "server/service/characterizations.h"
#include "server/service/follow_ups.h"
#include "server/service/held_plans.h"
#include "server/service/iteration_history.h"
#include "server/service/iteration_reports.h"
#include "server/service/job_operations.h"
#include "server/service/job_reactions.h"
#include "server/service/job_reads.h"
#include "server/service/limit_changes.h"
#include "server/service/registrations.h"
#include "server/service/sent_alerts.h"
#include "server/service/service.h"
#include "server/service/site_admissions.h"
#include "server/service/site_forecasts.h"
#include "server/service/site_history.h"
#include "server/service/site_power.h"
#include "server/service/stored_bytes.h"
#include "server/service/upkeep.h"

namespace perseus::service {

/// The parts in the order of their dependencies. Those with callbacks from executor or store are shared, so that a
/// callback after the service's end finds them gone.
struct Service::Parts {
  Parts(ServiceOptions given, store::Store& the_store, const Clock& the_clock, Executor& executor);
  JobHooks hooks();
  /// Reads the store, on this thread: for the start.
  Status read(store::Store& from);
  void connect();
  void use(const AlertReceiver& receiver);

  ServiceOptions options;
  const Clock& clock;
  double opened_s;
  std::function<void()> earlier_wake;
  std::shared_ptr<StoreAccess> store;
  std::shared_ptr<Characterizations> characterizations;
  FollowUps follow_ups;
  std::shared_ptr<JobCache> jobs;
  std::shared_ptr<StoredBytes> stored_bytes;
  std::shared_ptr<Upkeep> upkeep;
  JobListUpdater list;
  JobAccess access;
  std::shared_ptr<Subscriptions> subscriptions;
  std::shared_ptr<RecentEvents> recent;
  std::shared_ptr<LimitChanges> limit_changes;
  std::shared_ptr<StoredProfiles> profiles;
  std::shared_ptr<ProfileUploads> uploads;
  std::shared_ptr<LatencyReplans> latencies;
  std::shared_ptr<ShapeInputs> shapes;
  std::shared_ptr<RankPlans> rank_plans;
  WaitingRanks waiting;
  std::shared_ptr<JobFrontiers> frontiers;
  std::shared_ptr<ProfilingWindows> windows;
  std::shared_ptr<StragglerNotices> stragglers;
  std::shared_ptr<IterationHistory> history;
  IterationReports reports;
  std::shared_ptr<Registrations> registrations;
  JobOperations operations;
  JobReads reads;
  JobReactions reactions;
  HeldPlans held_plans;
  std::shared_ptr<SitePower> site;
  std::shared_ptr<SiteHistory> site_history;
  std::shared_ptr<SiteForecasts> forecasts;
  std::shared_ptr<SiteAdmissions> admissions;
  EnergyCounters energy;
  AlertWatch watch;
  std::shared_ptr<SentAlerts> sent_alerts;
  std::shared_ptr<AlertWebhook> webhook = std::make_shared<AlertWebhook>();
  Executor& workers;
};

}  // namespace perseus::service
