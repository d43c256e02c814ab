// Makes the inputs of the shapes that a job's steps have besides its own: its profiles with other microbatches.
//
// Input:   jobs whose ranks have reported shapes, see jobs/job_shapes.h.
// Output:  ShapeCompleted, with the input's blob: the input is characterized from then on, or the reason why there is
//          none.
// Errors:  store failures are retried.
// Cost:    O(shapes x pipelines); completing an input runs on the executor.
// Threads: io thread.
#pragma once

#include <string>

#include "base/clock.h"
#include "server/jobs/job_shapes.h"
#include "server/live/job_cache.h"
#include "server/plans/planning_options.h"
#include "server/profiles/known_profile.h"
#include "server/work/executor.h"

namespace perseus::plans {

class ShapeInputs {
 public:
  ShapeInputs(const PlanningOptions& options, live::JobCache& jobs, work::StoreAccess& store, const Clock& clock,
              work::Executor& executor)
      : options_(options), jobs_(jobs), store_(store), clock_(clock), executor_(executor) {}

  /// Completes the next input that a shape lacks.
  void go_on(live::LiveJob& live);

 private:
  void complete(live::LiveJob& live, const jobs::ShapeInput& missing, const std::string& text);
  void completed(const std::string& id, const jobs::ShapeInput& missing, const Result<profiles::KnownInput>& known);

  const PlanningOptions& options_;
  live::JobCache& jobs_;
  work::StoreAccess& store_;
  const Clock& clock_;
  work::Executor& executor_;
};

}  // namespace perseus::plans
