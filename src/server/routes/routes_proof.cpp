// Calls of /v1/site about the past and the coming hours: the proof for the utility, and the forecast.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "server/jobs/job_history.h"
#include "server/routes/api.h"
#include "server/routes/call_input.h"
#include "server/routes/site_proof_text.h"

namespace perseus::routes {
namespace {

constexpr std::size_t kMostEntries = 10'000;
constexpr std::string_view kEntryLimits = "a number of entries from 1 to 10000";
constexpr std::string_view kInstants = "seconds since 1970";
constexpr double kLatestInstant_s = 1e11;
constexpr std::string_view kHours = "hours from 0.1 to 168";

struct ProofCall {
  service::SiteProofQuery query;
  bool csv = false;
};

/// A client that names CSV and not JSON.
bool wants_csv(const http::HttpRequest& request) {
  const auto accepted = request.header("Accept");
  return accepted && accepted->find("text/csv") != std::string_view::npos &&
         accepted->find("application/json") == std::string_view::npos;
}

Result<ProofCall> proof_call(const http::HttpRequest& request, double now_s) {
  Parameters parameters(request);
  const std::string step = parameters.text("step").value_or("minute");
  const std::string domain = parameters.text("domain").value_or("");
  const auto format = parameters.text("format");
  const auto from_s = parameters.take<double>("from", kInstants);
  const auto until_s = parameters.take<double>("until", kInstants);
  const auto limit = parameters.take<std::size_t>("limit", kEntryLimits).value_or(kMostEntries);
  if (const auto error = parameters.error()) return *error;
  const auto step_s = jobs::step_named(step);
  if (!step_s) return wrong_parameter("step", step, jobs::kStepNames);
  if (format && *format != "csv" && *format != "json") return wrong_parameter("format", *format, "csv or json");
  if (limit < 1 || limit > kMostEntries) return wrong_parameter("limit", std::to_string(limit), kEntryLimits);
  for (const auto& [name, value] : {std::pair("from", from_s), std::pair("until", until_s)}) {
    if (value && *value > kLatestInstant_s) return wrong_parameter(name, *request.parameter(name), kInstants);
  }
  ProofCall call;
  call.csv = format ? *format == "csv" : wants_csv(request);
  call.query.step_s = *step_s;
  call.query.domain = domain;
  call.query.limit = limit;
  // The step that has begun at this moment is the last one.
  call.query.until_s = static_cast<std::int64_t>(std::ceil(until_s.value_or(now_s + 1)));
  const std::int64_t longest_s = *step_s == store::kMinute_s ? jobs::kDay_s : 366 * jobs::kDay_s;
  const double default_s = std::max(0.0, static_cast<double>(call.query.until_s - longest_s));
  const auto begin_s = static_cast<std::int64_t>(from_s.value_or(default_s));
  call.query.from_s = begin_s - begin_s % call.query.step_s;
  return call;
}

}  // namespace

void Api::site_proof(Call call) {
  const auto asked = proof_call(call.request, clock_.now_s());
  if (!asked) return call.fail(asked.error());
  service_.site_proof(asked->query, [call, csv = asked->csv](const Result<service::SiteProof>& proof) {
    if (!proof) return call.fail(proof.error());
    http::HttpResponse response = http::json_response(200, csv ? site_proof_csv(*proof) : site_proof_json(*proof));
    response.headers.emplace_back("Vary", "Accept");
    if (csv) {
      response.content_type = "text/csv; charset=utf-8";
      response.headers.emplace_back("Content-Disposition", "attachment; filename=\"site_proof.csv\"");
      if (proof->next_s) { response.headers.emplace_back("Perseus-Next", std::to_string(*proof->next_s)); }
    }
    call.send(std::move(response));
  });
}

void Api::site_forecast(Call call) {
  Parameters parameters(call.request);
  const auto hours = parameters.take<double>("hours", kHours).value_or(24);
  if (const auto error = parameters.error()) return call.fail(*error);
  if (!(hours >= 0.1 && hours <= 168)) return call.fail(wrong_parameter("hours", fmt::format("{}", hours), kHours));
  service_.site_forecast(hours, then<service::SiteForecast>(call, site_forecast_json));
}

}  // namespace perseus::routes
