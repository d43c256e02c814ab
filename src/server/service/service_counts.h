// What the service counts, for metrics.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "server/alerts/alert_webhook.h"
#include "server/jobs/alert.h"
#include "server/power/site_power_view.h"
#include "server/reports/energy_figures.h"
#include "server/store/store.h"

namespace perseus::service {

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

}  // namespace perseus::service
