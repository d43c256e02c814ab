// Profiles that jobs have learned, for later runs of the same training set-up in the same team.
//
// Input:   what a job says of itself: degrees, facts, the pipeline's shape; its team is the fact "team", set by the
//          server.
// Output:  learned_key(): where the store keeps the profile of such a set-up, whatever the number of its pipelines
//          and microbatches; empty if too little is said of it to know it again. Two teams have two keys. A job whose
//          iterations agreed with the profile, or did not, is noted with it (server/jobs/profile_trial.h).
// Errors:  invalid_input for what is kept under a key and cannot be read.
// Cost:    a hash.
// Threads: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "server/jobs/job.h"
#include "server/jobs/requests.h"
#include "server/service/live_jobs.h"

namespace perseus::service {

constexpr std::string_view team_fact = "team";
/// The fact that names the token that registered a job.
constexpr std::string_view kOwnerFact = "token";
/// Names that begin so are the server's own: a job that brings such a fact is refused.
constexpr std::string_view kOwnFacts = "perseus.";
/// The fact with the hash of the request that registered a job under an idempotency key.
constexpr std::string_view kRequestFact = "perseus.request";
/// What it was called before.
constexpr std::string_view kFormerRequestFact = "idempotency";
constexpr std::string_view learned_prefix = "known/";

std::string learned_key(const jobs::Degrees& degrees, const std::map<std::string, std::string>& facts,
                        const std::optional<jobs::PipelineShape>& shape);

/// As the store keeps it.
store::Blob learned_blob(const std::string& key, const jobs::LearnedProfile& learned);
/// Adds to the decision that the job's profile is to be known again: one of all its pipelines, if enough is said of it.
void note_learned(const jobs::Job& job, const jobs::ProfileKnown& profile, double now_s, Decision& decision);
Result<jobs::LearnedProfile> parse_learned(const std::string& key, const std::string& bytes);

}  // namespace perseus::service
