// Metrics of power, energy and plans: of all jobs, and of the largest jobs one by one.
//
// Problem: one series per job and metric must not flood Prometheus, and a counter must not go back because a job ends.
// Input:   figures of the jobs in training, sums since the server started, the limit of jobs with series of their own.
// Output:  gauges per job (label training_job) for the jobs with the highest power at maximum clock; power, savings,
//          stragglers and ranks of all others in one series, training_job="others". Counters have no label of a job.
//          Limits and power of each domain of the site (label domain), if the server keeps limits.
// Errors:  none.
// Cost:    O(jobs log jobs) per scrape.
// Threads: any.
#pragma once

#include <cstddef>

#include "server/metrics/metric_families.h"
#include "server/service/service_counts.h"

namespace perseus::metrics {

void add_energy_metrics(MetricFamilies& to, const service::ServiceCounts& service, std::size_t most_jobs);

}  // namespace perseus::metrics
