// Checks a rank's report of iterations by itself, without the job.
//
// Input:   a report.
// Output:  leave_out_energies(): drops a list of energies of the wrong length, sets energies that no GPU draws to 0
//          (not known), and returns each value that it left out, with what is allowed.
// Errors:  usage: values that no process can have measured; a client that measures correctly is never rejected.
// Cost:    O(iterations of the report).
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/jobs/requests.h"

namespace perseus::jobs {

/// Highest clock that any device may have.
inline constexpr int kMaxClock_mhz = 1'000'000;

Status check_report(const ReportIterations& request);
std::vector<std::string> leave_out_energies(ReportIterations& request);

}  // namespace perseus::jobs
