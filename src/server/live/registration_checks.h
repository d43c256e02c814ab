// Checks requests to register jobs and ranks, and the names that they contain; registrations.h registers them.
//
// Input:   a request, and for a rank the present job.
// Output:  the resulting event; nothing for a rank that repeats its registration (a retry, or a restarted process).
// Errors:  usage: out of range, with the allowed values; conflict: the rank's number or place is taken by another, or
//          held by a later process, or the job is over; too_large: more ranks than the limit.
// Cost:    O(1) per rank, besides the length of its lists.
// Threads: pure functions.
// Source:  paper section 4.4 (3D parallelism).
#pragma once

#include <optional>

#include "base/job_text.h"
#include "base/result.h"
#include "server/jobs/job.h"

namespace perseus::live {

Result<jobs::JobRegistered> decide_job(const jobs::RegisterJob& request, int max_ranks);
/// `silent_s`: time since the last call of the process that holds the rank; nothing: that process may still be
/// running. A process takes a rank over with a greater epoch, with `replaces`, or from a silent process. It gets the
/// request's epoch, or the rank's epoch plus one where that is greater.
Result<std::optional<jobs::EventBody>> decide_rank(const jobs::Job& job, const jobs::RegisterRank& request,
                                                   std::optional<double> silent_s = std::nullopt);
/// Limit of JSON's integers.
inline constexpr std::int64_t kMostEpoch = std::int64_t{1} << 53;
/// Rejects a call of a process that no longer holds the rank, which the job must have. Epoch 0: not given.
Status check_holder(const jobs::Job& job, int rank, std::int64_t epoch);

Status check_tier(const jobs::Tier& tier);
/// Ok if `name` can name a profile: 1..128 of [A-Za-z0-9._+-], not starting with a dot.
Status check_profile_name(const std::string& name);

}  // namespace perseus::live
