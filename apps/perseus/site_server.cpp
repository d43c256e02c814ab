#include "site_server.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "domain_limits.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/file.h"
#include "io/formats/toml_reader.h"
#include "server_action.h"
#include "server_call.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostBytes = std::size_t{4} << 20U;

json::value json_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return json::value(text->get());
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* list = node.as_array()) {
    json::array values;
    for (const toml::node& element : *list) values.push_back(json_of(element));
    return values;
  }
  json::object object;
  if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table) object[std::string(key.str())] = json_of(value);
  }
  return object;
}

json::object take_limit(json::object& from, double from_s) {
  json::object limit{{"from_s", from_s}};
  if (const auto* watts = from.if_contains("limit_w")) limit["limit_w"] = *watts;
  from.erase("limit_w");
  return limit;
}

json::object* domain_in(json::object& site, std::string_view name) {
  for (json::value& domain : site["domains"].as_array()) {
    const auto* known = domain.as_object().if_contains("name");
    if (known != nullptr && known->is_string() && known->get_string() == name) return &domain.as_object();
  }
  return nullptr;
}

Error no_domain(const std::string& name) {
  return {ErrorCode::usage, fmt::format("domain '{}'; allowed: the name of a domain of the site", name)};
}

/// The tables [[domain]], [[limit]] and [[host]] of a site's file as PUT /v1/site takes them.
Result<std::string> document_of(const toml::table& root) {
  json::object site = json_of(root).as_object();
  for (const char* const planned : {"job", "end_s", "ramp_step_s"}) site.erase(planned);
  const auto take = [&site](const char* name) {
    const json::value* const list = site.if_contains(name);
    json::array tables = list != nullptr && list->is_array() ? list->as_array() : json::array();
    site.erase(name);
    return tables;
  };
  json::array domains = take("domain");
  for (json::value& domain : domains) {
    if (!domain.is_object()) return Error{ErrorCode::usage, "domain: allowed: tables [[domain]]"};
    domain.as_object()["limits"] = json::array{take_limit(domain.as_object(), 0)};
  }
  site["domains"] = std::move(domains);
  for (json::value& limit : take("limit")) {
    if (!limit.is_object() || !limit.as_object().contains("domain") || !limit.as_object().contains("from_s")) {
      return Error{ErrorCode::usage, "limit: allowed: tables [[limit]] with domain and from_s"};
    }
    json::object& step = limit.as_object();
    const std::string name = step["domain"].is_string() ? std::string(step["domain"].as_string()) : "";
    json::object* const domain = domain_in(site, name);
    if (domain == nullptr) return no_domain(name);
    boost::system::error_code wrong;
    const double from_s = step["from_s"].to_number<double>(wrong);
    if (wrong) return Error{ErrorCode::usage, "limit: from_s: allowed: a number of seconds"};
    (*domain)["limits"].as_array().push_back(take_limit(step, from_s));
  }
  site["hosts"] = take("host");
  return formats::json_text(site);
}

Result<http::HttpCall> set_call(const std::string& file) {
  const auto text = formats::read_file(file, kMostBytes);
  if (!text) return text.error();
  if (file.ends_with(".json")) return http::HttpCall{"PUT", "/v1/site", *text};
  const auto root = formats::parse_toml(*text, file);
  if (!root) return root.error();
  auto document = document_of(*root);
  if (!document) return document.error();
  return http::HttpCall{"PUT", "/v1/site", *document};
}

struct NewLimit {
  std::string domain;
  double watts = 0;
  std::optional<double> from_s, until_s;
};

double from_of(const json::value& step) {
  const auto* from = step.as_object().if_contains("from_s");
  return from == nullptr ? 0 : from->to_number<double>();
}

/// The document with another limit of that domain from one time until another; then the present one applies again.
Result<std::string> with_limit(const std::string& document, const NewLimit& limit, double now_s) {
  json::object site = json::parse(document).as_object();
  json::object* const domain = domain_in(site, limit.domain);
  if (domain == nullptr) return no_domain(limit.domain);
  const double from_s = limit.from_s.value_or(now_s);
  if (limit.until_s && *limit.until_s <= from_s) {
    return Error{ErrorCode::usage, fmt::format("--until: {}; allowed: later than {}", *limit.until_s, from_s)};
  }
  json::object after;  // the limit at `until`
  json::array steps;
  const json::array before = domain->contains("limits") ? (*domain)["limits"].as_array() : json::array();
  for (const json::value& step : before) {
    if (from_of(step) < from_s) steps.push_back(step);
    if (limit.until_s && from_of(step) <= *limit.until_s) after = step.as_object();
  }
  steps.push_back(json::object{{"from_s", from_s}, {"limit_w", limit.watts}});
  if (limit.until_s) {
    after["from_s"] = *limit.until_s;
    steps.push_back(after);
    for (const json::value& step : before) {
      if (from_of(step) > *limit.until_s) steps.push_back(step);
    }
  }
  (*domain)["limits"] = std::move(steps);
  return formats::json_text(site);
}

void add_limit(CLI::App& group, Command& command) {
  auto* action = group.add_subcommand("limit", "Set the limit of a domain, from now on or between two times");
  const auto peer = add_server_options(*action);
  add_json_flag(*action, command);
  auto limit = std::make_shared<NewLimit>();
  action->add_option("DOMAIN", limit->domain, "Name of the domain")->required();
  action->add_option("WATTS", limit->watts, "Limit as metered")->required();
  action->add_option("--from", limit->from_s, "Unix time at which it begins; default: now")->type_name("TIME");
  action->add_option("--until", limit->until_s, "Unix time at which the limits of before apply again; default: never")
      ->type_name("TIME");
  action->callback([peer, limit, &command] {
    command.run = [peer, limit, &command]() -> Result<int> {
      const double now_s = SystemClock().now_s();
      const auto answer =
          change_site(*peer, [&](const std::string& document) { return with_limit(document, *limit, now_s); });
      return print_answer(*peer, answer, command.json);
    };
  });
}

ListForm status_form() {
  return {"domains",
          {{"DOMAIN", "name"},
           {"PARENT", "parent"},
           {"METERED LIMIT W", "metered_limit_w"},
           {"LIMIT W", "limit_w"},
           {"GRANTED W", "granted_w"},
           {"COUNTED W", "counted_w"},
           {"REPORTED W", "reported_w"},
           {"MISSING W", "missing_w"},
           {"PRICE", "price"}},
          2};
}

}  // namespace

void add_site_server_actions(CLI::App& group, Command& command) {
  auto file = std::make_shared<std::string>();
  auto* set = add_action(group, command, "set", "Set the power limits that a server keeps; replaces all of them",
                         [file] { return set_call(*file); });
  set->add_option("FILE.toml", *file, "Domains, limits and hosts; see docs/power.md")->required();
  add_action(group, command, "show", "Show the power limits of a server", []() -> Result<http::HttpCall> {
    return http::HttpCall{"GET", "/v1/site", ""};
  });
  add_limit(group, command);
  add_action(group, command, "clear", "Remove the power limits of a server", []() -> Result<http::HttpCall> {
    return http::HttpCall{"DELETE", "/v1/site", ""};
  });
  add_list_action(group, command, "status", "Show limits, grants and what jobs may draw, by domain", status_form(),
                  [](const http::HttpPeer& peer) {
                    return call_server(peer, {"GET", "/v1/site/power", ""});
                  });
}

}  // namespace perseus::cli
