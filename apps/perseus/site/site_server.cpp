#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "command_line/terminal_size.h"
#include "io/formats/boost_json_text.h"
#include "io/formats/file.h"
#include "io/formats/toml_reader.h"
#include "remote/answer_members.h"
#include "remote/server_action.h"
#include "remote/server_call.h"
#include "site/domain_limits.h"
#include "site/site_actions.h"
#include "site/site_status.h"

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

/// JSON has no such numbers.
Status check_finite(const toml::node& node, const std::string& file) {
  Status checked = Ok{};
  const auto check = [&](const auto& element) {
    if (checked) checked = check_finite(element, file);
  };
  if (const auto* number = node.as_floating_point(); number != nullptr && !std::isfinite(number->get())) {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}:{}: {}; allowed: finite numbers", file, node.source().begin.line, number->get())};
  }
  if (const auto* list = node.as_array()) std::ranges::for_each(*list, check);
  if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table) check(value);
  }
  return checked;
}

using Keys = std::span<const std::string_view>;

/// What a limit may begin at: earlier times are meant as seconds from now or from the beginning of a plan.
constexpr formats::NumberRange kInstants{1e9, 1e11};
constexpr const char* kInstantsAllowed = "seconds since 1970, from 1000000000 (2001-09-09) on";
constexpr formats::NumberRange kMeteredWatts{0, 1e12};

constexpr auto kRootKeys = std::to_array<std::string_view>(
    {"name", "objective", "pue", "supply_efficiency", "node_overhead_w", "gpus_per_node", "least_rate", "pacing",
     "lease_s", "dwell_s", "accelerator_w", "admission_s", "domain", "limit", "host", "team"});
constexpr auto kDomainKeys = std::to_array<std::string_view>(
    {"name", "parent", "limit_w", "constant_w", "window_s", "ramp_down_w_per_s", "ramp_up_w_per_s", "accelerator_w"});
constexpr auto kLimitKeys = std::to_array<std::string_view>({"domain", "from_s", "limit_w"});
constexpr auto kTeamKeys = std::to_array<std::string_view>({"name", "domain", "least_rate", "priority"});
constexpr auto kHostKeys = std::to_array<std::string_view>({"host", "prefix", "domain"});

/// Makes the document of PUT /v1/site of a site's file; keeps the first error. The server checks the other values.
class SiteFile {
 public:
  SiteFile(const toml::table& root, const std::string& file) : root_(root, file, "", kRootKeys), file_(file) {
    site_ = json_of(root).as_object();
    for (const char* const tables : {"domain", "limit", "host", "team"}) site_.erase(tables);
  }

  Result<std::string> document() {
    keep(root_);
    site_["domains"] = json::array();
    read_tables("domain", kDomainKeys, [this](formats::TomlFields& fields, json::object domain) {
      fields.string("name");
      domain["limits"] = json::array{take_limit(fields, domain, 0)};
      site_["domains"].as_array().push_back(std::move(domain));
    });
    read_tables("limit", kLimitKeys,
                [this](formats::TomlFields& fields, json::object limit) { read_limit(fields, limit); });
    site_["hosts"] = json::array();
    read_tables("host", kHostKeys, [this](formats::TomlFields&, json::object host) {
      site_["hosts"].as_array().push_back(std::move(host));
    });
    site_["teams"] = json::array();
    read_tables("team", kTeamKeys, [this](formats::TomlFields&, json::object team) {
      site_["teams"].as_array().push_back(std::move(team));
    });
    if (error_) return *error_;
    return formats::json_text(site_);
  }

 private:
  void keep(const formats::TomlFields& fields) {
    if (!error_) error_ = fields.error();
  }

  template <class Fill>
  void read_tables(std::string_view key, Keys keys, Fill fill) {
    const std::vector<const toml::table*> tables = root_.tables(key);
    keep(root_);
    for (const toml::table* table : tables) {
      if (error_) return;
      formats::TomlFields fields(*table, file_, fmt::format("[[{}]]", key), keys);
      fill(fields, json_of(*table).as_object());
      keep(fields);
    }
  }

  static json::object take_limit(formats::TomlFields& fields, json::object& from, double from_s) {
    json::object limit{{"from_s", from_s}};
    if (fields.has("limit_w")) limit["limit_w"] = fields.number("limit_w", kMeteredWatts);
    from.erase("limit_w");
    return limit;
  }

  void read_limit(formats::TomlFields& fields, json::object& step) {
    json::object* const domain = find_domain(site_, fields.string("domain"));
    if (domain == nullptr) fields.fail("domain", "the name of a [[domain]]");
    boost::system::error_code wrong;
    const json::value* const from = step.if_contains("from_s");
    const double from_s = from == nullptr ? 0 : from->to_number<double>(wrong);
    if (wrong || !(from_s >= kInstants.least && from_s <= kInstants.most)) fields.fail("from_s", kInstantsAllowed);
    json::object limit = take_limit(fields, step, from_s);
    if (domain != nullptr) (*domain)["limits"].as_array().push_back(std::move(limit));
  }

  formats::TomlFields root_;
  const std::string& file_;
  json::object site_;
  std::optional<Error> error_;
};

/// The times of limits in the JSON of PUT /v1/site; the server checks everything else. 0: from the beginning.
Status check_instants(const std::string& text, const std::string& file) {
  boost::system::error_code problem;
  const json::value site = json::parse(text, problem);
  const json::array& domains = list_in(site, "domains");
  for (std::size_t d = 0; d < domains.size(); ++d) {
    const json::array& limits = list_in(domains[d], "limits");
    for (std::size_t k = 0; k < limits.size(); ++k) {
      const double from_s = number_in(limits[k], "from_s").value_or(0);
      if (from_s == 0 || (from_s >= kInstants.least && from_s <= kInstants.most)) continue;
      return Error{ErrorCode::invalid_input, fmt::format("{}: domains[{}].limits[{}].from_s: {}; allowed: 0, or {}",
                                                         file, d, k, from_s, kInstantsAllowed)};
    }
  }
  return Ok{};
}

Result<http::HttpCall> set_call(const std::string& file) {
  const auto text = formats::read_file(file, kMostBytes);
  if (!text) return text.error();
  if (file.ends_with(".json")) {
    if (Status right = check_instants(*text, file); !right) return right.error();
    return http::HttpCall{"PUT", "/v1/site", *text};
  }
  const auto root = formats::parse_toml(*text, file);
  if (!root) return root.error();
  auto document = SiteFile(*root, file).document();
  if (!document) return document.error();
  if (Status finite = check_finite(*root, file); !finite) return finite.error();
  return http::HttpCall{"PUT", "/v1/site", *document};
}

struct NewLimit {
  std::string domain;
  double watts = 0;
  std::optional<double> from_s, until_s;
};

double from_of(const json::value& step) { return number_in(step, "from_s").value_or(0); }

struct LimitedSite {
  std::string document;
  std::size_t removed = 0;  ///< later steps of the domain
};

/// The document with another limit of that domain from one time until another; then the present one applies again.
Result<LimitedSite> with_limit(const std::string& document, const NewLimit& limit, double now_s) {
  auto site = site_in(document);
  if (!site) return site.error();
  const auto found = domain_in(*site, limit.domain);
  if (!found) return Error{ErrorCode::usage, found.error().message};
  json::object* const domain = *found;
  const double from_s = limit.from_s.value_or(now_s);
  if (limit.until_s && *limit.until_s <= from_s) {
    return Error{ErrorCode::usage, fmt::format("--until: {}; allowed: later than {}", *limit.until_s, from_s)};
  }
  json::value after = json::object();  // the limit at `until`
  json::array steps;
  std::size_t removed = 0;
  const json::array before = list_in(json::value(*domain), "limits");
  for (const json::value& step : before) {
    if (!step.is_object()) continue;
    if (from_of(step) < from_s) steps.push_back(step);
    if (limit.until_s && from_of(step) <= *limit.until_s) after = step;
    if (from_of(step) > from_s && (!limit.until_s || from_of(step) < *limit.until_s)) ++removed;
  }
  steps.push_back(json::object{{"from_s", from_s}, {"limit_w", limit.watts}});
  if (limit.until_s) {
    after.get_object()["from_s"] = *limit.until_s;
    steps.push_back(after);
    for (const json::value& step : before) {
      if (step.is_object() && from_of(step) > *limit.until_s) steps.push_back(step);
    }
  }
  (*domain)["limits"] = std::move(steps);
  return LimitedSite{formats::json_text(*site), removed};
}

void add_limit(CLI::App& group, Command& command) {
  auto limit = std::make_shared<NewLimit>();
  const auto set_limit = [limit, &command](const http::HttpPeer& peer) -> Result<int> {
    const double now_s = SystemClock().now_s();
    std::size_t removed = 0;
    const auto answer = change_site(peer, [&](const std::string& document) -> Result<std::string> {
      auto changed = with_limit(document, *limit, now_s);
      if (!changed) return changed.error();
      removed = changed->removed;
      return std::move(changed->document);
    });
    if (!answer || command.json || removed == 0) return print_answer(peer, answer, command.json);
    print(fmt::format("done: {} later step{} removed\n", removed, removed == 1 ? "" : "s"));
    return 0;
  };
  auto* action =
      add_server_action(group, command, "limit",
                        "Set the limit of a domain until a time, or for good in place of its later limits", set_limit);
  action->add_option("DOMAIN", limit->domain, "Name of the domain")->required();
  action->add_option("WATTS", limit->watts, "Limit as metered")
      ->required()
      ->check(number_within(kMeteredWatts.least, kMeteredWatts.most, "W"));
  const CLI::Validator instants = number_within(kInstants.least, kInstants.most, "seconds since 1970");
  add_value(*action, "--from TIME", limit->from_s, "Unix time at which it begins; default: now", instants);
  add_value(*action, "--until TIME", limit->until_s,
            "Unix time at which the limits of before apply again; default: never, later limits are removed", instants);
}

void add_meter(CLI::App& group, Command& command) {
  struct Reading {
    std::string domain;
    double watts = 0;
  };
  auto reading = std::make_shared<Reading>();
  auto* action = add_action(group, command, "meter", "Tell a server what the meter of a domain reads",
                            [reading]() -> Result<http::HttpCall> {
                              const json::object one{{"domain", reading->domain}, {"power_w", reading->watts}};
                              const json::object body{{"readings", json::array{one}}};
                              return http::HttpCall{"POST", "/v1/site/meter", formats::json_text(body)};
                            });
  action->add_option("DOMAIN", reading->domain, "Name of the domain")->required();
  action->add_option("WATTS", reading->watts, "Mean power since the last reading, as metered")
      ->required()
      ->check(number_within(kMeteredWatts.least, kMeteredWatts.most, "W"));
}

/// The document as text: a limit without watts says so.
Result<std::string> site_shown(const Result<std::string>& document) {
  if (!document) return document;
  boost::system::error_code wrong;
  json::value site = json::parse(*document, wrong);
  json::array* const domains = list_to_change(site, "domains");
  if (domains == nullptr) return document;
  for (json::value& domain : *domains) {
    json::array* const limits = list_to_change(domain, "limits");
    if (limits == nullptr) continue;
    for (json::value& limit : *limits) {
      if (limit.is_object() && member_in(limit, "limit_w") == nullptr) limit.get_object()["limit"] = "none";
    }
  }
  return formats::json_text(site);
}

void add_site_set(CLI::App& group, Command& command) {
  auto file = std::make_shared<std::string>();
  add_server_action(group, command, "set", "Set the power limits that a server keeps; replaces all of them",
                    [file, &command](const http::HttpPeer& peer) -> Result<int> {
                      const auto call = set_call(*file);
                      if (!call) return call.error();
                      return print_answer(peer, call_server_with(*file, peer, *call), command.json);
                    })
      ->add_option("FILE.toml", *file, "Domains, limits and hosts; see docs/power.md")
      ->required();
}

void add_site_show(CLI::App& group, Command& command) {
  add_server_action(group, command, "show", "Show the power limits of a server",
                    [&command](const http::HttpPeer& peer) {
                      const auto document = call_server(peer, {"GET", "/v1/site", ""});
                      return print_answer(peer, command.json ? document : site_shown(document), command.json);
                    });
}

ListForm status_form() {
  using Use = ListColumn::Use;
  return {"domains",
          {{"DOMAIN", "name"},
           {"PARENT", "parent", Use::roomy},
           {"METERED LIMIT", "metered_limit_w"},
           {"LIMIT", "limit_w"},
           {"FACTOR", "meter_factor", Use::roomy},
           {"GUARD", "guard_w", Use::some},
           {"GRANTED", "granted_w"},
           {"COUNTED", "counted_w", Use::table, ListColumn::Kind::bounded, "limit_w"},
           {"REPORTED", "reported_w", Use::roomy},
           {"RESERVED", "reserved_w", Use::roomy, ListColumn::Kind::bounded, "limit_w"},
           {"MISSING", "missing_w"},
           {"FALLS AT", "falls_at_s", Use::some},
           {"FALLS TO", "falls_to_w", Use::some},
           {"PRICE", "price_pct_per_kw", Use::roomy}},
          2,
          [](const boost::json::value& power, bool wide, double now_s) {
            return site_status_text(power, wide, now_s, output_columns());
          }};
}

ListForm reservations_form() {
  using Use = ListColumn::Use;
  return {"reservations",
          {{"JOB", "job"},
           {"DOMAIN", "domain"},
           {"ACCELERATORS", "accelerators"},
           {"POWER", "power_w"},
           {"COUNTED", "counted_w", Use::roomy},
           {"READY", "ready"},
           {"OVER", "over"},
           {"SINCE", "since_s", Use::roomy, ListColumn::Kind::age},
           {"EXPIRES", "expires_s", Use::wide},
           {"TOKEN", "by", Use::roomy, ListColumn::Kind::id}},
          2};
}

}  // namespace

void add_site_server_actions(CLI::App& group, Command& command) {
  add_site_set(group, command);
  add_site_show(group, command);
  add_limit(group, command);
  add_meter(group, command);
  add_action(group, command, "clear", "Remove the power limits of a server", []() -> Result<http::HttpCall> {
    return http::HttpCall{"DELETE", "/v1/site", ""};
  });
  const auto fetch_power = [](const http::HttpPeer& peer) { return call_server(peer, {"GET", "/v1/site/power", ""}); };
  add_list_action(group, command, "reservations", "Show the watts reserved for jobs that have not started",
                  reservations_form(), fetch_power);
  add_list_action(group, command, "status", "Show whether limits hold, who holds how much, what is next", status_form(),
                  fetch_power);
}

}  // namespace perseus::cli
