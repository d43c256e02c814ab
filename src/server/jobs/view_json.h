// Jobs and their events as JSON: what /v1 answers and what the dashboard draws.
//
// Output:  one JSON text. Members that are not known are left out; units are in the names; times of day are Unix
//          seconds. web/src/dashboard/api.js says which of them the dashboard reads.
// Errors:  none.
// Cost:    linear, some microseconds plus a tenth of one per pipeline.
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/jobs/requests.h"

namespace perseus::jobs {

/// What a kWh costs and emits, as far as the operator said.
struct EnergyFactors {
  std::optional<double> price_per_kwh;
  std::string currency;
  std::optional<double> carbon_g_per_kwh;
  bool operator==(const EnergyFactors&) const = default;
};

/// A row of the list of jobs.
std::string listed_job_json(const ListedJob& job);
std::string job_json(const JobView& view, const EnergyFactors& factors = {});
/// As the store's index keeps it; what cannot be read is an empty one.
std::string format_summary(const JobSummary& summary);
JobSummary parse_summary(std::string_view text);
/// The data of a server-sent event.
std::string event_json(const JobEvent& event);

}  // namespace perseus::jobs
