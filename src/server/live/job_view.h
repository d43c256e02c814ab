// The view of a job for clients.
//
// Input:   the job in memory and the time.
// Output:  its view: state, plan, stragglers and policies in words, savings so far; and its entry in lists.
// Errors:  none.
// Cost:    O(pipelines + notices), O(points) under a power cap.
// Threads: io thread.
#pragma once

#include <vector>

#include "server/live/live_job.h"

namespace perseus::live {

jobs::JobView view_of(const LiveJob& live, double now_s);
/// Reported iterations under plans that are not in the log yet.
std::vector<jobs::IterationsCounted> counts_since(const LiveJob& live);
jobs::JobSummary summary_of(const LiveJob& live);
/// An iteration as the ranks run it: under the plan in force, or at their highest clock while the first plan is held
/// back. Nothing while a pipeline has no frontier.
std::optional<jobs::JobView::PerIteration> iteration_run(const LiveJob& live);

/// True for events on which no plan depends.
bool leaves_plans_unchanged(const jobs::EventBody& body);
/// Iterations to count before the event, because it would give them another value, or none. So a total never goes back
/// because a plan or a straggler changed.
std::vector<jobs::IterationsCounted> counts_before(const LiveJob& live, const jobs::EventBody& body);

}  // namespace perseus::live
