// Learned profiles of jobs, for later runs of the same training setup in the same team.
//
// Input:   a job's description: degrees, facts, the pipeline's shape; its team is the fact "team", set by the server.
// Output:  learned_key(): the store's key for the profile of such a setup, independent of the number of its pipelines
//          and microbatches; empty if the description is too sparse to identify the setup. Two teams have two keys.
//          The outcome of each job's trial of the profile is stored with it (server/profiles/profile_trial.h).
// Errors:  invalid_input for an unreadable blob.
// Cost:    a hash.
// Threads: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "server/jobs/job.h"
#include "server/jobs/requests.h"
#include "server/live/live_job.h"

namespace perseus::live {

using jobs::kTeamFact;
/// The fact with the token that registered a job.
constexpr std::string_view kOwnerFact = "token";
/// The fact with the hash of the request that registered a job under an idempotency key.
constexpr std::string_view kRequestFact = "perseus.request";
constexpr std::string_view kLearnedPrefix = "known/";

std::string learned_key(const jobs::Degrees& degrees, const std::map<std::string, std::string>& facts,
                        const std::optional<jobs::PipelineShape>& shape);

/// The stored form.
store::Blob learned_blob(const std::string& key, const jobs::LearnedProfile& learned);
/// Adds to the decision the blob that makes the job's profile available to later jobs: if it covers all its pipelines
/// and the description suffices.
void note_learned(const jobs::Job& job, const jobs::ProfileKnown& profile, double now_s, Decision& decision);
Result<jobs::LearnedProfile> parse_learned(const std::string& key, const std::string& bytes);

}  // namespace perseus::live
