// The pages that do not change while the server runs, and calls for operation: probes and metrics.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "io/http/content_coding.h"
#include "io/report/dashboard.h"
#include "server/routes/api.h"

namespace perseus::routes {

Api::Page::Page(std::string (*text)()) : plain(text) {
  const std::string once = plain();
  compressed = std::make_shared<const std::string>(http::gzipped(once));
  plain_tag = report::entity_tag(once);
  compressed_tag = report::entity_tag(*compressed);
}

http::HttpResponse Api::response_with(const Page& page, const http::HttpRequest& request, std::string content_type) {
  const bool compress = http::accepts_gzip(request);
  const std::string& tag = compress ? page.compressed_tag : page.plain_tag;
  http::HttpResponse response{304, "", nullptr, {}};
  if (request.header("If-None-Match") != tag) {
    const auto body = compress ? page.compressed : std::make_shared<const std::string>(page.plain());
    response = {200, std::move(content_type), body, {}};
  }
  response.headers = {{"Cache-Control", "no-cache"}, {"ETag", tag}, {"Vary", "Accept-Encoding"}};
  if (compress && response.status == 200) response.headers.emplace_back("Content-Encoding", "gzip");
  return response;
}

void Api::dashboard(Call call) {
  http::HttpResponse page = response_with(dashboard_, call.request, "text/html; charset=utf-8");
  for (const auto& [name, value] : {std::pair{"X-Content-Type-Options", "nosniff"},
                                    {"X-Frame-Options", "DENY"},
                                    {"Referrer-Policy", "no-referrer"}}) {
    page.headers.emplace_back(name, value);
  }
  call.responder.send(std::move(page));
}

void Api::healthz(Call call) {
  call.answer(json_object([&](JsonWriter& f) {
    f.always("status", "ok");
    f.always("version", options_.version);
  }));
}

namespace {

/// One check of /readyz.
struct Check {
  std::string_view name;
  std::string problem;  ///< empty: it passes
  std::optional<double> since_s = std::nullopt;
  std::optional<std::uint64_t> free_bytes = std::nullopt;
};
void describe(auto& f, const Check& check) {
  f.always("status", check.problem.empty() ? "ok" : "failing");
  f("message", check.problem);
  f("since_s", check.since_s);
  f("free_bytes", check.free_bytes);
}

}  // namespace

void Api::readyz(Call call) {
  std::vector<Check> checks;
  const work::StoreHealth store = service_.store_health();
  checks.push_back({"store", store.answers ? "" : store.problem});
  if (!store.answers) checks.back().since_s = with_decimals(store.since_s, 3);
  if (const auto disk = options_.host != nullptr ? options_.host->disk() : std::nullopt) {
    checks.push_back({"disk", disk->problem, std::nullopt, disk->free_bytes});
  }
  checks.push_back({"draining", draining_ ? "the server is stopping" : ""});
  std::string failing;
  for (const Check& check : checks) {
    if (check.problem.empty()) continue;
    failing += fmt::format("{}{}: {}", failing.empty() ? "" : "; ", check.name, check.problem);
  }
  http::HttpResponse response =
      failing.empty() ? http::json_response(200, "{}") : response_of({ErrorCode::unavailable, failing});
  response.body = std::make_shared<const std::string>(json_object([&](JsonWriter& f) {
    f.members_of(*response.body);
    f.always("status", failing.empty() ? "ready" : "not_ready");
    f.always("checks", JsonObject{[&](JsonWriter& all) {
               for (const Check& check : checks) all.always(check.name, check);
             }});
  }));
  call.send(std::move(response));
}

void Api::openapi(Call call) { call.responder.send(response_with(openapi_, call.request, "application/json")); }

void Api::metrics(Call call) {
  const auto http = options_.host != nullptr ? options_.host->connections() : std::nullopt;
  std::string text = options_.metrics->text(options_.version, service_.counts(), http, options_.metrics_jobs);
  call.responder.send({200, "text/plain; version=0.0.4", std::make_shared<const std::string>(std::move(text)), {}});
}

}  // namespace perseus::routes
