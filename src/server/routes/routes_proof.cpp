// Calls of /v1/site about the past and the coming hours: the proof for the utility, and the forecast.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "server/routes/api.h"
#include "server/routes/call_input.h"
#include "server/routes/site_proof_text.h"

namespace perseus::routes {
namespace {

constexpr std::size_t kMostEntries = 10'000;
constexpr std::string_view kHours = "hours from 0.1 to 168";

struct ProofCall {
  power::SiteProofQuery query;
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
  ProofCall call;
  call.query.domain = parameters.text("domain").value_or("");
  const auto format = parameters.text("format");
  const auto range = time_range(parameters, "until", kMostEntries, now_s);
  if (!range) return range.error();
  if (format && *format != "csv" && *format != "json") return wrong_parameter("format", *format, "csv or json");
  call.csv = format ? *format == "csv" : wants_csv(request);
  call.query.step_s = range->step_s;
  call.query.from_s = range->from_s;
  call.query.until_s = range->until_s;
  call.query.limit = range->limit;
  return call;
}

}  // namespace

void Api::site_proof(Call call) {
  const auto asked = proof_call(call.request, clock_.now_s());
  if (!asked) return call.fail(asked.error());
  service_.site_history.proof(asked->query, [this, call, query = asked->query,
                                             csv = asked->csv](const Result<power::SiteProof>& proof) {
    if (!proof) return call.fail(proof.error());
    if (proof->entries.empty() && !query.domain.empty() && !service_.site.documents().has(query.domain)) {
      return call.fail(wrong_parameter("domain", query.domain, "a domain of the site, or of its history at that time"));
    }
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
  const std::string domain = parameters.text("domain").value_or("");
  if (const auto error = parameters.error()) return call.fail(*error);
  if (!(hours >= 0.1 && hours <= 168)) return call.fail(wrong_parameter("hours", fmt::format("{}", hours), kHours));
  if (!domain.empty() && service_.site.documents().current() != nullptr && !service_.site.documents().has(domain)) {
    return call.fail(wrong_parameter("domain", domain, "a domain of the site"));
  }
  service_.forecasts.forecast(hours, then<power::SiteForecast>(call, [domain](const power::SiteForecast& forecast) {
                                return site_forecast_json(forecast, domain);
                              }));
}

}  // namespace perseus::routes
