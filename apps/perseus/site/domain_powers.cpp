#include "site/domain_powers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/percent_encode.h"
#include "io/formats/json_reader.h"
#include "remote/answer_members.h"
#include "remote/server_call.h"
#include "site/domain_limits.h"

namespace perseus::cli {
namespace {

using formats::JsonFields;
using formats::JsonReader;

constexpr double kMinutesKept_s = 23.5 * 3600;

/// What a watt of an accelerator is at the meter.
Result<double> meter_per_accelerator(const http::HttpPeer& server) {
  const auto body = call_server(server, {"GET", "/v1/site", ""});
  if (!body) return body.error();
  const auto site = site_in(*body);
  if (!site) return site.error();
  return number_in(*site, "pue").value_or(1) / number_in(*site, "supply_efficiency").value_or(1);
}

Result<openadr::DrawnStep> step_of(const JsonReader& entry, double step_s, double meter_per_accelerator) {
  JsonFields fields(entry);
  openadr::DrawnStep step;
  step.from_s = fields.number("start_s");
  step.to_s = step.from_s + step_s;
  const auto metered = fields.optional("metered_w");
  step.is_metered = metered.has_value();
  if (metered) {
    const auto number = metered->number();
    if (!number) return number.error();
    step.mean = Watts(*number);
  } else {
    const double accelerators_w =
        fields.number("planned_w") - fields.number("planned_of_reporting_w") + fields.number("reported_w");
    step.mean = Watts(fields.number("metered_baseline_w") +
                      meter_per_accelerator * (accelerators_w - fields.number("baseline_w")));
  }
  if (fields.error()) return *fields.error();
  return step;
}

}  // namespace

Result<std::vector<openadr::DrawnStep>> powers_of_domain(const http::HttpPeer& server, const std::string& domain,
                                                         double from_s, double to_s, double now_s) {
  const auto factor = meter_per_accelerator(server);
  if (!factor) return factor.error();
  const bool is_recent = from_s > now_s - kMinutesKept_s;
  const double step_s = is_recent ? 60 : 3600;
  const std::string target = fmt::format("/v1/site/proof?step={}&domain={}&until={:.0f}", is_recent ? "minute" : "hour",
                                         percent_encode(domain), std::ceil(to_s));
  const auto body = pages_in_time(server, target, std::max(0.0, std::floor(from_s)), "entries");
  if (!body) return body.error();
  const auto document = formats::parse_json(*body, "GET /v1/site/proof");
  if (!document) return Error{ErrorCode::unavailable, document.error().message};
  std::vector<openadr::DrawnStep> steps;
  JsonFields proof(document->root());
  const Status read = proof.value("entries").for_each([&](const JsonReader& entry) -> Status {
    auto step = step_of(entry, step_s, *factor);
    if (!step) return step.error();
    steps.push_back(*step);
    return Ok{};
  });
  if (!read) return Error{ErrorCode::unavailable, read.error().message};
  return steps;
}

}  // namespace perseus::cli
