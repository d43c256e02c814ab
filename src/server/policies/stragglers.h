// Straggler notices: which target will be slower, by how much and from when; and the precedence of several notices.
//
// Problem: set_straggler(id, delay, degree) comes from the infrastructure for an accelerator, a rank or a pipeline,
//          at any time, several at once, overlapping, repeated, and is sometimes withdrawn.
// Input:   the job and a request.
// Output:  the resulting events, none for a request that changes nothing (a retry); the time of the next notice.
//          Rules (docs/job_plans.md): per target the notice that took effect last applies, and degree 1 ends it; a
//          pipeline is as slow as its slowest target; stragglers from iteration times (`detected`) and from notices
//          are separate targets.
// Errors:  usage: not exactly one target, a degree or delay out of range; not_found: no such accelerator, rank,
//          pipeline, notice; conflict: the job is over.
// Cost:    O(notices).
// Threads: pure functions.
// Source:  paper section 5.
#pragma once

#include <vector>

#include "base/result.h"
#include "server/jobs/job.h"

namespace perseus::policies {

inline constexpr double kMaxDegree = 1000;
inline constexpr double kMaxDelay_s = 30 * 24 * 3600.0;

struct NoticeDecision {
  std::vector<jobs::EventBody> events;  ///< at most one
  jobs::StragglerSet::Outcome notice;   ///< id empty: there was nothing to end, for the reason in nothing_done
};
/// One per pipeline that the target belongs to (an accelerator may run ranks of several).
Result<std::vector<NoticeDecision>> decide_straggler(const jobs::Job& job, const jobs::SetStraggler& request,
                                                     double now_s, bool detected = false);
Result<std::vector<jobs::EventBody>> decide_withdrawal(const jobs::Job& job, const jobs::WithdrawStraggler& request);

/// The pending notice that takes effect first; null if there is none.
const jobs::Notice* next_pending(const jobs::Job& job);

/// Per pipeline, >= 1.
std::vector<double> degrees_in_force(const jobs::Job& job);

}  // namespace perseus::policies
