// Whether a job runs the plans that the paper asks for: an oracle that tries every point of every frontier.
//
// Input:   the job as folded from its log, the frontiers in the database, the time.
// Output:  Ok, or what is wrong: T' of the stragglers in force, the tolerated slowdown, the pinned point, and for each
//          pipeline the slowest point that is fast enough. Says nothing about a job under a power budget.
// Source:  paper section 3.2, min(T*, T').
#pragma once

#include <vector>

#include "base/result.h"
#include "server/jobs/job.h"
#include "tests/support/test_store.h"

namespace perseus::testing {

/// By pipeline; what time has made due is in force. Empty: a frontier is missing.
std::vector<int> wanted_points(const TestDatabase& database, const jobs::Job& job, double now_s);
Status check_deployed_plan(const TestDatabase& database, const jobs::Job& job, double now_s);

}  // namespace perseus::testing
