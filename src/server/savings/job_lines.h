// The lines of the server's log on a job: its start, its profile, each change of its plan, its end.
//
// Input:   an event that became durable, the job with it, the frontiers in memory.
// Output:  one line; empty for an event that the log leaves out. Energies and savings are labeled: measured by the
//          ranks, or estimated from the profile.
// Errors:  none: without a frontier, a plan's line has no time and energy.
// Cost:    O(pipelines) for a plan.
// Threads: io thread, see job_savings.h.
#pragma once

#include <string>

#include "server/policies/deployment.h"

namespace perseus::savings {

std::string log_line(const jobs::Job& job, const policies::Frontiers& frontiers, const jobs::Event& event);

}  // namespace perseus::savings
