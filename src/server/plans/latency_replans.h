// Plans a job again with the switch latency that its ranks measured, and holds its first plan back until then.
//
// Input:   jobs whose ranks have reported; see "Switch latency" in docs/job_plans.md.
// Output:  the event of the completed input, which starts characterization; the
//          ranks get a plan that was held back.
// Errors:  an input that cannot be completed is not tried again with that latency; store failures are retried.
// Cost:    O(inputs of the job); completing an input runs on the executor.
// Threads: io thread.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "server/jobs/pipeline_input.h"
#include "server/live/job_cache.h"
#include "server/plans/planning_options.h"
#include "server/work/executor.h"

namespace perseus::plans {

class LatencyReplans {
 public:
  LatencyReplans(const PlanningOptions& options, live::JobCache& jobs, work::StoreAccess& store, const Clock& clock,
                 work::Executor& executor)
      : options_(options), jobs_(jobs), store_(store), clock_(clock), executor_(executor) {}

  /// Plans again if the ranks measured a switch latency different from the planned one.
  void go_on(live::LiveJob& live);
  /// True if ranks run at their highest clock and get no plan yet, since a plan for their switch latency will follow.
  [[nodiscard]] bool first_plan_waits(const live::LiveJob& live, double now_s) const;
  /// Sends the plan if it was held back and need not be any longer.
  void release_first_plan(live::LiveJob& live);

 private:
  /// The switch latency with which an input must be planned again, unless that has failed.
  static std::optional<Seconds> latency_to_replan(const live::LiveJob& live, const std::string& input);
  void replan(const std::string& id, const std::string& input, Seconds latency, const std::string& text);
  void replanned(const std::string& id, const std::string& input, Seconds latency,
                 const Result<profiles::KnownInput>& known);

  const PlanningOptions& options_;
  live::JobCache& jobs_;
  work::StoreAccess& store_;
  const Clock& clock_;
  work::Executor& executor_;
};

}  // namespace perseus::plans
