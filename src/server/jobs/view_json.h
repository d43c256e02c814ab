// Jobs and their events as JSON, for the answers of /v1 and the dashboard.
//
// Output:  one JSON text. Unknown members are left out; units are in the names; times of day are Unix seconds.
//          web/src/dashboard/api.js lists the members that the dashboard reads.
// Errors:  none.
// Cost:    linear, some microseconds plus a tenth of one per pipeline.
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/jobs/requests.h"

namespace perseus::jobs {

/// Price and emissions of a kWh, if the operator configured them.
struct EnergyFactors {
  std::optional<double> price_per_kwh;
  std::string currency;
  std::optional<double> carbon_g_per_kwh;
  bool operator==(const EnergyFactors&) const = default;
};

/// An element of the list of jobs.
std::string job_list_entry_json(const JobListEntry& entry);
std::string job_json(const JobView& view, const EnergyFactors& factors = {});
/// The form in the store's index; an unreadable summary reads as an empty one.
std::string format_summary(const JobSummary& summary);
JobSummary parse_summary(std::string_view text);
/// The data of a server-sent event.
std::string event_json(const JobEvent& event);

}  // namespace perseus::jobs
