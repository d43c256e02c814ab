// Who may be what in a job: the checks on registering jobs and ranks.
//
// Input:   a request, and for a rank the job as it is.
// Output:  the event that it makes; nothing for a rank that registers again as it did before (a retry, or a restarted
//          process).
// Errors:  usage: out of range, with what is allowed; conflict: the rank's number or place is taken by another, or
//          held by a later process; the job is over; too_large: more ranks than the limit.
// Cost:    O(1) a rank, beside the length of its lists.
// Threads: pure functions.
// Source:  paper section 4.4 (3D parallelism).
#pragma once

#include <optional>

#include "base/result.h"
#include "server/jobs/job.h"

namespace perseus::service {

Result<jobs::JobRegistered> decide_job(const jobs::RegisterJob& request, int max_ranks);
/// `silent_s`: for so long the process that holds the rank has not called; nothing: it may still be there. A process
/// takes a rank over with a greater epoch, with `replaces`, or from one that is silent. It gets the request's epoch, or
/// one more than the rank's where that is greater.
Result<std::optional<jobs::EventBody>> decide_rank(const jobs::Job& job, const jobs::RegisterRank& request,
                                                   std::optional<double> silent_s = std::nullopt);
/// JSON's integers end there.
inline constexpr std::int64_t kMostEpoch = std::int64_t{1} << 53;
/// Refuses a call of a process that no longer holds the rank, which the job must have. 0: it does not say.
Status check_holder(const jobs::Job& job, int rank, std::int64_t epoch);

/// Ok if `text` can stand in logs and pages as it is: UTF-8 without control characters, at most `most` bytes.
Status check_text(const std::string& what, const std::string& text, std::size_t most);
/// Ok if `name` can name a profile: 1..128 of [A-Za-z0-9._+-], not starting with a dot.
Status check_profile_name(const std::string& name);

}  // namespace perseus::service
