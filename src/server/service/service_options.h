// The limits and times that the service is opened with.
//
// Input:   of an operator, see docs/serve.md.
#pragma once

#include <cstdint>

#include "server/alerts/alert_webhook.h"
#include "server/plans/planning_options.h"

namespace perseus::service {

/// What Service::set_limits() replaces, besides plans::PlanningLimits.
struct ServiceLimits {
  double keep_finished_s = 0;            ///< ended jobs are removed after this time; 0: never
  std::int64_t keep_finished_bytes = 0;  ///< size of all logs above which ended jobs are removed; 0: no limit
  double keep_unused_s = 0;              ///< profiles and frontiers that no job needs for this long are removed; 0:
                                         ///< never
  double alert_after_s = 0;              ///< a condition raises an alert after this time; 0: no alerts
  alerts::AlertReceiver alert_receiver = {};  ///< of the alerts of this server; none: they are not sent
  bool operator==(const ServiceLimits&) const = default;
};

struct ServiceOptions : plans::PlanningOptions, ServiceLimits {
  double keep_minutes_s = 0;          ///< minutes of jobs' history become hours after this time; 0: never
  double keep_hours_s = 0;            ///< hours are removed after this time; 0: never
  double store_answers_s = 10;        ///< a call without an answer of the store by then is `unavailable`
  int finished_jobs_in_memory = 100;  ///< others are read again when requested
};

}  // namespace perseus::service
