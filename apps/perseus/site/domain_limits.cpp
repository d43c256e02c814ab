#include "site/domain_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <thread>

#include "base/json_writer.h"
#include "io/formats/boost_json_text.h"
#include "remote/answer_members.h"
#include "remote/server_call.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kDomainsShown = 8;
constexpr std::chrono::milliseconds kPause{20};

/// Calls `visit` with the name and the object of each domain until it returns true.
template <class Visit>
void visit_domains(json::object& site, const Visit& visit) {
  json::value* const domains = site.if_contains("domains");
  if (domains == nullptr || !domains->is_array()) return;
  for (json::value& domain : domains->get_array()) {
    const json::value* const name = member_in(domain, "name");
    if (name != nullptr && name->is_string() && visit(name->get_string(), domain.get_object())) return;
  }
}

}  // namespace

Result<json::value> site_in(const std::string& body) {
  boost::system::error_code problem;
  json::value site = json::parse(body, problem);
  if (problem || !site.is_object()) {
    return Error{ErrorCode::unavailable, "GET /v1/site: the answer is not a JSON object"};
  }
  return site;
}

json::object* find_domain(json::object& site, std::string_view name) {
  json::object* found = nullptr;
  visit_domains(site, [&](const json::string& known, json::object& domain) {
    if (known == name) found = &domain;
    return found != nullptr;
  });
  return found;
}

Result<json::object*> domain_in(json::value& site, const std::string& name) {
  if (json::object* const found = find_domain(site.get_object(), name)) return found;
  std::vector<std::string> names;
  visit_domains(site.get_object(), [&names](const json::string& known, json::object&) {
    names.emplace_back(known.c_str());
    return names.size() == kDomainsShown;
  });
  return Error{ErrorCode::not_found,
               fmt::format("domain '{}' is not in the server's site; allowed: {}", name,
                           names.empty() ? "none, it has no domains" : fmt::format("{}", fmt::join(names, ", ")))};
}

std::string limits_json(const std::vector<openadr::WattStep>& steps) {
  std::string text;
  append_json(text, JsonList{steps, [&](const openadr::WattStep& step) {
                               return JsonObject{[&](JsonWriter& one) {
                                 if (&step != &steps.front()) one("from_s", step.from_s);
                                 one("limit_w", step.limit);
                               }};
                             }});
  return text;
}

Result<std::string> change_site(const http::HttpPeer& server,
                                const std::function<Result<std::string>(const std::string&)>& change) {
  for (int tries = 1;; ++tries) {
    const auto there = reply_of_server(server, {"GET", "/v1/site", ""});
    if (!there) return there.error();
    const auto changed = change(there->body);
    if (!changed) return changed.error();
    http::HttpCall put{"PUT", "/v1/site", *changed};
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
  openadr::SentLimits there{{{0, std::nullopt}}, ""};
  const json::value* const unread = (*found)->if_contains("limits_unread");
  if (unread != nullptr && unread->is_string()) there.unread = unread->get_string().c_str();
  const json::value* const limits = (*found)->if_contains("limits");
  if (limits == nullptr || !limits->is_array()) return there;
  for (const json::value& limit : limits->get_array()) {
    if (!limit.is_object()) continue;
    const auto watts = number_in(limit, "limit_w");
    there.steps.push_back(
        {number_in(limit, "from_s").value_or(0), watts ? std::optional(Watts(*watts)) : std::nullopt});
  }
  return there;
}

Status replace_limits(const http::HttpPeer& server, const std::string& domain, const openadr::SentLimits& limits) {
  const auto answer = change_site(server, [&](const std::string& body) -> Result<std::string> {
    auto site = site_in(body);
    if (!site) return site.error();
    const auto found = domain_in(*site, domain);
    if (!found) return found.error();
    (**found)["limits"] = json::parse(limits_json(limits.steps));
    (*found)->erase("limits_unread");
    if (!limits.unread.empty()) (**found)["limits_unread"] = limits.unread;
    return formats::json_text(*site);
  });
  if (!answer) return answer.error();
  return Ok{};
}

}  // namespace perseus::cli
