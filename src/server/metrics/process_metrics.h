// The process metrics that Prometheus' client libraries export, and the build information.
//
// Output:  process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds, process_max_fds,
//          process_start_time_seconds, perseus_build_info{version, compiler}.
// Errors:  values missing from /proc are left out.
// Cost:    four files of /proc and a list of descriptors: some 50 us, and 1 us for each 5 descriptors.
// Threads: any.
// Source:  Prometheus, "Writing client libraries", Process metrics.
#pragma once

#include <string>

#include "server/metrics/metric_families.h"

namespace perseus::metrics {

void add_process_metrics(MetricFamilies& to, const std::string& version);

}  // namespace perseus::metrics
