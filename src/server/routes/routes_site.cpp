// Calls of /v1/site: the power limits of the site, and what its jobs draw under them.
#include <utility>

#include "server/jobs/site_document.h"
#include "server/routes/api.h"
#include "server/routes/call_input.h"
#include "server/routes/site_json.h"

namespace perseus::routes {

void Api::show_site(Call call) {
  const Result<std::string> text = service_.site.documents().text();
  if (!text) return call.fail(text.error());
  http::HttpResponse response = http::json_response(200, *text);
  response.headers.emplace_back("ETag", jobs::site_tag(*text));
  call.send(std::move(response));
}

void Api::put_site(Call call, jobs::SiteDocument body) {
  std::optional<std::string> expected;
  if (const auto tag = call.request.header("If-Match")) expected = std::string(*tag);
  service_.site.documents().set(std::move(body), std::move(expected), then_ok(call), author_of(call.identity));
}

void Api::clear_site(Call call) { service_.site.documents().clear(then_ok(call), author_of(call.identity)); }

void Api::site_meter(Call call, std::vector<jobs::MeterReading> body) {
  service_.site.take_readings(std::move(body), then_ok(call));
}

void Api::site_power(Call call) {
  Parameters parameters(call.request);
  const auto since = parameters.text("since");
  if (const auto error = parameters.error()) return call.fail(*error);
  if (since && service_.site.documents().current() != nullptr && site_changes_.is_fresh(clock_.now_s())) {
    return call.send(http::json_response(200, site_changes_.answer(*since)));
  }
  const Result<power::SitePowerView> view = service_.site.view();
  if (!view) return call.fail(view.error());
  if (!since) return call.send(http::json_response(200, site_power_json(*view)));
  site_changes_.take(*view);
  call.send(http::json_response(200, site_changes_.answer(*since)));
}

void Api::admit_job(Call call, jobs::AdmissionRequest body) {
  body.by = author_of(call.identity);
  service_.admissions.admit(std::move(body), then<power::Admission>(call, admission_json));
}

void Api::release_admission(Call call) {
  service_.admissions.release(call.parts[0], then_ok(call), author_of(call.identity));
}

}  // namespace perseus::routes
