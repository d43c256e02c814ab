// Reactions to a job's new events, and to the times at which something is due for it: which part acts, in which order.
//
// Input:   committed(): events that became durable, or were read again; wake(): the job's time.
// Output:  calls to the parts of the service: subscriptions, waiting ranks, frontiers, profiling, switch latency,
//          shapes.
// Errors:  a job that cannot be read now is woken again later.
// Cost:    that of the parts.
// Threads: io thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/live/job_cache.h"
#include "server/plans/job_frontiers.h"
#include "server/plans/latency_replans.h"
#include "server/plans/profiling_windows.h"
#include "server/plans/shape_inputs.h"
#include "server/plans/waiting_ranks.h"
#include "server/views/job_list_updater.h"
#include "server/views/subscriptions.h"

namespace perseus::service {

class JobReactions {
 public:
  struct Parts {
    views::Subscriptions& subscriptions;
    plans::WaitingRanks& waiting;
    plans::JobFrontiers& frontiers;
    plans::ProfilingWindows& windows;
    plans::LatencyReplans& latencies;
    plans::ShapeInputs& shapes;
    views::JobListUpdater& list;
  };
  JobReactions(const plans::PlanningOptions& options, live::JobCache& jobs, const Clock& clock, const Parts& parts)
      : options_(options), jobs_(jobs), clock_(clock), parts_(parts) {}

  void committed(live::LiveJob& live, const std::vector<live::SequencedEvent>& events);
  void wake(const std::string& id);
  void removed(live::LiveJob& live);
  [[nodiscard]] std::int64_t plans_deployed() const { return plans_deployed_; }

 private:
  /// True if the event gives the ranks a new version.
  bool take(live::LiveJob& live, const live::SequencedEvent& event);

  const plans::PlanningOptions& options_;
  live::JobCache& jobs_;
  const Clock& clock_;
  Parts parts_;
  std::int64_t plans_deployed_ = 0;
};

}  // namespace perseus::service
