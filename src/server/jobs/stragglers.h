// Straggler notices: who will be how much slower from when on, and what rules when several say something.
//
// Problem: set_straggler(id, delay, degree) comes from the infrastructure for an accelerator, a rank or a pipeline,
//          at any time, several at once, overlapping, twice, and is sometimes taken back.
// Input:   the job and a request.
// Output:  the events that it makes, none for a request that says what is already so (a retry); when a notice is due.
//          Rules, in docs/server.md: per target the notice that took effect last rules and degree 1 ends it; a
//          pipeline is as slow as its slowest target; what is seen in iteration times (`detected`) and what is told
//          are targets apart.
// Errors:  usage: not exactly one target, a degree or delay out of range; not_found: no such accelerator, rank,
//          pipeline, notice; conflict: the job is over.
// Cost:    O(notices).
// Threads: pure functions.
// Source:  paper section 5.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/jobs/job.h"

namespace perseus::jobs {

inline constexpr double max_degree = 1000;
inline constexpr double max_delay_s = 30 * 24 * 3600.0;

struct NoticeDecision {
  std::vector<EventBody> events;  ///< at most one
  StragglerSet::Notice notice;    ///< id empty: there was nothing to end; it says so
};
/// One per pipeline that the target is part of (an accelerator may run ranks of several).
Result<std::vector<NoticeDecision>> decide_straggler(const Job& job, const SetStraggler& request, double now_s,
                                                     bool detected = false);
Result<std::vector<EventBody>> decide_withdrawal(const Job& job, const WithdrawStraggler& request);

/// The pending notice that takes effect first; null if there is none.
const Notice* next_pending(const Job& job);

/// Per pipeline, >= 1.
std::vector<double> degrees_in_force(const Job& job);

}  // namespace perseus::jobs
