// Reports of usage and demand as JSON, and the lists of reports that a utility's server has.
//
// Input:   what a descriptor asks for, the intervals of one report, mean powers of steps of time.
// Output:  a report with one resource: the domain, or AGGREGATED_REPORT if the descriptor asks for the aggregate. Each
//          interval has its value and its DATA_QUALITY: OK where a meter measured all of it, ESTIMATED where powers
//          come from ranks and plans, or part of the interval has none (its mean is that of the rest), MISSING without
//          any, and then no value.
// Errors:  check_request(): invalid_input, why the client does not send such a report, with what is allowed.
//          parse_reports(): invalid_input with the name.
// Cost:    linear.
// Threads: pure functions.
// Source:  OpenADR 3.1.0, schema reportRequest; User Guide, section 7.8; Definition, table of reading types.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "server/openadr/event_json.h"
#include "server/openadr/report_series.h"

namespace perseus::openadr {

/// Mean power of a domain, as its meter reads it.
struct DrawnStep {
  double from_s = 0, to_s = 0;
  Watts mean;
  bool is_metered = false;  ///< else estimated
};

struct ReportAuthor {
  std::string client_name, resource;
};

struct StoredReport {
  std::string id, name;
  std::vector<ReportInterval> intervals;  ///< of its first resource
};

Status check_request(const ReportRequest& request);
/// The same for every attempt to send this report: "perseus USAGE hall 2026-03-14T09:00:00Z 24".
std::string report_name(const ReportRequest& request, const std::vector<ReportInterval>& intervals,
                        const ReportAuthor& author);
/// `steps`: by start, without overlap; may have gaps. The request must pass check_request().
std::string report_json(const std::string& event, const ReportRequest& request,
                        const std::vector<ReportInterval>& intervals, std::span<const DrawnStep> steps,
                        const ReportAuthor& author);
/// Reports that cannot be read are left out; those with intervals that cannot have none.
Result<std::vector<StoredReport>> parse_reports(std::string_view text, const std::string& name);

}  // namespace perseus::openadr
