// Checks that a list of transfer latencies has as many entries as the schedules have boundaries.
//
// Input:   the latencies, the schedules that will use them (at least one of them must need that many), and where the
//          latencies were given, for the error.
// Errors:  of the kind of `given_in`, whose message the text begins with: the number and the allowed ones.
// Threads: pure functions.
#pragma once

#include <vector>

#include "base/result.h"
#include "plan/pipeline.h"
#include "planning/model/schedule.h"
#include "planning/model/transfer_latency.h"

namespace perseus::cli {

Status check_transfer_count(const model::TransferLatency& latency, const std::vector<model::Schedule>& schedules,
                            const Error& given_in);

/// Where the latencies of a pipeline were given: the option, or the file of --constants.
Error latency_origin(const PipelineOptions& options);

}  // namespace perseus::cli
