// What a job's plan saves against everything at maximum clock.
//
// Input: the job, its plan, the frontiers. Output: time and energy of one iteration of the whole job (all pipelines,
// all accelerators) under the plan and at maximum clock, each waiting for its own slowest pipeline, stragglers
// included; nothing while a pipeline has no frontier. A straggler's own energy is taken from its profile as if it were
// not slow: the same on both sides. counted(): the iterations since the last count, from iteration numbers where ranks
// report them, else from elapsed time over the planned iteration time. Units: s, J. Errors: none. Cost: O(pipelines).
// Threads: pure functions. Source: paper section 6.2.
#pragma once

#include <optional>

#include "server/deployment.h"

namespace perseus::server {

std::optional<JobView::PerIteration> iteration_cost(const Job& job, const Frontiers& frontiers);

/// Nothing if there is nothing to count. `iteration`: the last one that is known to have run.
std::optional<IterationsCounted> counted(const Job& job, const Frontiers& frontiers,
                                         std::optional<std::int64_t> iteration, double now_s);

}  // namespace perseus::server
