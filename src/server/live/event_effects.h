// Effects of an event of a job: on the plans that ranks get, or on the value of iterations that are not counted yet.
//
// Threads: io thread.
#pragma once

#include <vector>

#include "server/live/live_job.h"

namespace perseus::live {

/// True for events on which no plan depends.
bool leaves_plans_unchanged(const jobs::EventBody& body);
/// Iterations to count before the event, because it would give them another value, or none. So a total never goes back
/// because a plan or a straggler changed.
std::vector<jobs::IterationsCounted> counts_before(const LiveJob& live, const jobs::EventBody& body);

}  // namespace perseus::live
