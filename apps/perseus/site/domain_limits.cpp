#include "site/domain_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "remote/server_call.h"

namespace perseus::cli {
namespace {

constexpr std::size_t kDomainsShown = 8;
constexpr std::chrono::milliseconds kPause{20};

Result<jobs::SiteBody> site_in(const std::string& body) {
  auto site = jobs::parse_json_as<jobs::SiteBody>(body, "GET /v1/site");
  if (!site) return Error{ErrorCode::unavailable, site.error().message};
  return site;
}

std::vector<jobs::LimitBody> limits_of(const std::vector<openadr::WattStep>& steps) {
  std::vector<jobs::LimitBody> limits;
  for (const openadr::WattStep& step : steps) {
    limits.push_back(
        {limits.empty() ? 0 : step.from_s, step.limit ? std::optional(step.limit->value()) : std::nullopt});
  }
  return limits;
}

}  // namespace

Result<jobs::DomainBody*> domain_in(jobs::SiteBody& site, const std::string& name) {
  const auto found = std::ranges::find(site.domains, name, &jobs::DomainBody::name);
  if (found != site.domains.end()) return &*found;
  std::vector<std::string_view> names;
  for (const jobs::DomainBody& domain : site.domains) {
    if (names.size() < kDomainsShown) names.push_back(domain.name);
  }
  return Error{ErrorCode::not_found,
               fmt::format("domain '{}' is not in the server's site; allowed: {}", name,
                           names.empty() ? "none, it has no domains" : fmt::format("{}", fmt::join(names, ", ")))};
}

std::string limits_json(const std::vector<openadr::WattStep>& steps) { return json_text(limits_of(steps)); }

Result<std::string> change_site(const http::HttpPeer& server, const std::function<Status(jobs::SiteBody&)>& change) {
  for (int tries = 1;; ++tries) {
    const auto there = reply_of_server(server, {"GET", "/v1/site", ""});
    if (!there) return there.error();
    auto site = site_in(there->body);
    if (!site) return site.error();
    if (const Status changed = change(*site); !changed) return changed.error();
    http::HttpCall put{"PUT", "/v1/site", json_text(*site)};
    put.if_match = there->etag;
    auto answer = call_server(server, put);
    if (answer || answer.error().code != ErrorCode::conflict || tries == kMostTries) return answer;
    std::this_thread::sleep_for(tries * kPause);
  }
}

Result<openadr::SentLimits> limits_of_domain(const http::HttpPeer& server, const std::string& domain) {
  const auto body = call_server(server, {"GET", "/v1/site", ""});
  if (!body) return body.error();
  auto site = site_in(*body);
  if (!site) return site.error();
  const auto found = domain_in(*site, domain);
  if (!found) return found.error();
  openadr::SentLimits there{{{0, std::nullopt}}, (*found)->limits_unread};
  for (const jobs::LimitBody& limit : (*found)->limits) {
    there.steps.push_back({limit.from_s, limit.limit_w ? std::optional(Watts(*limit.limit_w)) : std::nullopt});
  }
  return there;
}

Status replace_limits(const http::HttpPeer& server, const std::string& domain, const openadr::SentLimits& limits) {
  const auto answer = change_site(server, [&](jobs::SiteBody& site) -> Status {
    const auto found = domain_in(site, domain);
    if (!found) return found.error();
    (*found)->limits = limits_of(limits.steps);
    (*found)->limits_unread = limits.unread;
    return Ok{};
  });
  if (!answer) return answer.error();
  return Ok{};
}

}  // namespace perseus::cli
