// A profile that has become known for a job: its event, and what the store keeps of it.
//
// Input:   profile CSV and shape as a client gave them, or as they were measured; limits.
// Output:  known_input(): the event, and the blob "input/KEY".
// Errors:  those of complete(), after the source's name.
// Cost:    that of complete(): parses a profile and builds a DAG; keep it off the io thread.
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "server/jobs/job.h"
#include "server/jobs/pipeline_input.h"
#include "server/store/store.h"

namespace perseus::jobs {

struct KnownInput {
  ProfileKnown event;
  store::Blob blob;
};
Result<KnownInput> known_input(const std::string& csv, const PipelineShape& shape, const InputLimits& limits,
                               std::string source, std::vector<int> pipelines, bool fixed_latency = false);

/// A measured latency as plans count on it: two digits, upwards. Jobs that measure nearly the same share a frontier,
/// and no plan counts on less than was measured. Not positive: 0.
Seconds rounded_latency(Seconds measured);

/// The switch latency that the input must be planned with again, since the ranks measured another one; nothing: none.
std::optional<Seconds> latency_to_plan_with(const Job& job, const std::string& input);

/// Plans should wait for switch latencies: ranks that measure them, or have not registered, have not reported theirs,
/// and the last rank that registered did so less than `patience_s` ago. Never if profile or job give the latency.
bool awaits_latencies(const Job& job, double now_s, double patience_s);

/// A job's shape with what it leaves open as the profile has it: links, blocking power, switch latency.
PipelineShape with_constants_of(PipelineShape shape, const PipelineShape& profile);

/// The shape with what the job's ranks measured in place of what it leaves open: latencies, blocking power.
PipelineShape with_measurements(PipelineShape shape, const Job& job);

}  // namespace perseus::jobs
