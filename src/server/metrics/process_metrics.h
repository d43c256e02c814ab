// The process metrics that Prometheus' client libraries export, and the build information.
//
// Output:  process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds, process_max_fds,
//          process_start_time_seconds, perseus_build_info{version, compiler}.
// Errors:  values missing from /proc are left out.
// Cost:    four files of /proc and a list of descriptors: some 50 us, and 1 us for each 5 descriptors.
// Threads: any.
// Source:  Prometheus, "Writing client libraries", Process metrics.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace perseus::metrics {

std::vector<prometheus::MetricFamily> process_metrics(const std::string& version);

}  // namespace perseus::metrics
