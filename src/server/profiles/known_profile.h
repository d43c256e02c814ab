// A profile that becomes known for a job: its event, and its blob in the store.
//
// Input:   profile CSV and shape, given by a client or measured; limits.
// Output:  known_input(): the event, and the blob "input/KEY".
// Errors:  those of complete(), prefixed with the source's name.
// Cost:    that of complete(): parses a profile and builds a DAG; run it off the io thread.
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "server/jobs/job.h"
#include "server/jobs/pipeline_input.h"
#include "server/store/store.h"

namespace perseus::profiles {

struct KnownInput {
  jobs::ProfileKnown event;
  store::Blob blob;
};
Result<KnownInput> known_input(const std::string& csv, const jobs::PipelineShape& shape,
                               const jobs::InputLimits& limits, std::string source, std::vector<int> pipelines,
                               bool fixed_latency = false);

/// A measured latency as plans use it: two digits, rounded up. Jobs with nearly equal measurements then share a
/// frontier, and no plan assumes less than was measured. Not positive: 0.
Seconds rounded_latency(Seconds measured);

/// The measured switch latency with which the input must be planned again; nothing: no need.
std::optional<Seconds> latency_to_plan_with(const jobs::Job& job, const std::string& input);

/// True if plans should wait for switch latencies: some ranks that measure them, or have not registered, have not
/// reported theirs, and the last registration was less than `patience_s` ago. Never if profile or job give the
/// latency.
bool awaits_latencies(const jobs::Job& job, double now_s, double patience_s);

/// A job's shape, completed from the profile: links, blocking power, switch latency.
jobs::PipelineShape with_constants_of(jobs::PipelineShape shape, const jobs::PipelineShape& profile);

/// The shape, completed by the job's ranks' measurements: latencies, blocking power.
jobs::PipelineShape with_measurements(jobs::PipelineShape shape, const jobs::Job& job);

}  // namespace perseus::profiles
