#include "serve/serve_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <type_traits>

#include "base/split.h"
#include "io/formats/file.h"
#include "io/formats/number.h"
#include "io/formats/toml_reader.h"
#include "plan/slowdown.h"
#include "serve/secret_file.h"
#include "server/alerts/alert_webhook.h"

namespace perseus::cli {
namespace {

constexpr int kSecondsOfDay = 86400, kBytesOfMegabyte = 1'000'000;
constexpr bool kReloads = true;

/// Where an option of a part is.
template <class Part, class Owner, class Option>
auto in(Part ServeConfig::*part, Option Owner::*option) {
  return [=](ServeConfig& config) -> Option& { return config.*part.*option; };
}
auto held(std::size_t access::HeldLimits::*limit) {
  return [=](ServeConfig& config) -> std::size_t& { return config.api.held.*limit; };
}

/// `option`: where it is; a number within the limits, in `unit` of the option's.
template <class Where>
auto number(Where option, double least, double most, int unit = 1) {
  return [=](ServeConfig& config, const std::string& text) -> Status {
    using Number = std::remove_reference_t<std::invoke_result_t<Where, ServeConfig&>>;
    const auto value = formats::number_in<Number>(text);
    if (!value || !(static_cast<double>(*value) >= least && static_cast<double>(*value) <= most)) {
      return Error{ErrorCode::usage, fmt::format("'{}' is not a number from {:.10g} to {:.10g}", text, least, most)};
    }
    std::invoke(option, config) = *value * static_cast<Number>(unit);
    return Ok{};
  };
}

template <class Where>
auto text(Where option) {
  return [=](ServeConfig& config, const std::string& value) -> Status {
    std::invoke(option, config) = value;
    return Ok{};
  };
}

/// 0: unknown.
auto factor(std::optional<double> jobs::EnergyFactors::*member) {
  return [=](ServeConfig& config, const std::string& text) -> Status {
    std::optional<double>& known = config.api.factors.*member;
    Status set = number([&](ServeConfig&) -> double& { return known.emplace(); }, 0, 1e6)(config, text);
    if (known == 0.0) known.reset();
    return set;
  };
}

Status request_time(ServeConfig& config, const std::string& text) {
  int time_s = 0;
  Status set = number([&](ServeConfig&) -> int& { return time_s; }, 1, 3600)(config, text);
  config.http.request_time = std::chrono::seconds(time_s);
  return set;
}

/// Names of hosts, separated by commas.
Status hosts(ServeConfig& config, const std::string& value) {
  config.api.hosts.clear();
  if (value.empty()) return Ok{};
  for (const std::string_view name : split(value, ',')) {
    if (name.empty() || name.find_first_of(" \t:/") != std::string::npos) {
      return Error{ErrorCode::usage, fmt::format("'{}' is not a host name without port", name)};
    }
    config.api.hosts.emplace_back(name);
  }
  return Ok{};
}

Status alert_webhook(ServeConfig& config, const std::string& value) {
  config.service.alert_receiver.url = value;
  return value.empty() ? Status(Ok{}) : alerts::check_receiver_url(value);
}

/// The file's only line.
Status alert_token(ServeConfig& config, const std::string& file) {
  std::string& token = config.service.alert_receiver.token;
  token.clear();
  if (file.empty()) return Ok{};
  auto secret = read_secret(file);
  if (!secret) return secret.error();
  token = *std::move(secret);
  return Ok{};
}

Status log_level(ServeConfig& config, const std::string& value) {
  for (const std::string_view level : {"debug", "info", "warning", "error"}) {
    if (value == level) {
      config.log_level = value;
      return Ok{};
    }
  }
  return Error{ErrorCode::usage, fmt::format("'{}' is not one of debug, info, warning, error", value)};
}

Status slowdown(ServeConfig& config, const std::string& value) {
  const Result<double> tolerated = slowdown_of(value);
  if (!tolerated) return tolerated.error();
  config.service.slowdown = *tolerated;
  return Ok{};
}

/// A basic string of TOML.
std::string toml_text(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      text += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text + '"';
}

struct Setting {
  std::string value, from;
  bool from_names_it = false;  ///< a flag's or variable's name identifies the setting
};

/// Replaces the settings that the TOML file contains.
Status read_file_settings(const std::string& file, std::map<std::string, Setting>& settings) {
  const auto content = formats::read_file(file);
  if (!content) return content.error();
  const auto table = formats::parse_toml(*content, file);
  if (!table) return Error{ErrorCode::usage, table.error().message};
  std::vector<std::string_view> names;
  for (const ConfigKey& key : config_table()) names.push_back(key.name);
  formats::TomlFields fields(*table, file, "", names);
  for (const std::string_view name : names) {
    if (auto value = fields.text_or_number(name)) {
      settings[std::string(name)] = {*std::move(value), fields.where(name), false};
    }
  }
  if (fields.error()) return Error{ErrorCode::usage, fields.error()->message};
  return Ok{};
}

Result<std::map<std::string, Setting>> settings_of(const std::map<std::string, std::string>& flags,
                                                   const std::string& file) {
  std::map<std::string, Setting> settings;
  for (const ConfigKey& key : config_table())
    settings[std::string(key.name)] = {std::string(key.fallback), "default", false};
  if (!file.empty()) {
    if (Status status = read_file_settings(file, settings); !status) return status.error();
  }
  for (const ConfigKey& key : config_table()) {
    if (const char* value = std::getenv(environment_of(key).c_str())) {
      settings[std::string(key.name)] = {value, environment_of(key), true};
    }
    if (const auto flag = flags.find(std::string(key.name)); flag != flags.end()) {
      settings[std::string(key.name)] = {flag->second, flag_of(key), true};
    }
  }
  return settings;
}

Status apply(const std::map<std::string, Setting>& settings, ServeConfig& config) {
  for (const ConfigKey& key : config_table()) {
    const Setting& setting = settings.at(std::string(key.name));
    config.texts[std::string(key.name)] = setting.value;
    if (const Status set = key.set(config, setting.value); !set) {
      const std::string name = setting.from_names_it ? "" : fmt::format("{}: ", key.name);
      return Error{ErrorCode::usage, fmt::format("{}: {}{}", setting.from, name, set.error().message)};
    }
  }
  return Ok{};
}

using ConfigKeys = std::vector<ConfigKey>;
using C = ServeConfig;
using S = service::ServiceOptions;
using A = routes::ApiOptions;
using H = http::HttpServerOptions;
using L = access::HeldLimits;

ConfigKeys listening_and_storage_settings() {
  return {
      {"listen", "HOST:PORT", "127.0.0.1:7787",
       "address and port to listen on, * for all of IPv4 and IPv6; beyond loopback only with tokens", text(&C::listen)},
      {"hosts", "NAMES", "",
       "host names of the server besides localhost, separated by commas; none: any name, once tokens are required",
       hosts, kReloads},
      {"data", "DIR", "", "directory of the SQLite database; created if it does not exist", text(&C::data)},
      {"database", "URL", "", "PostgreSQL database, for a server with a standby, postgresql://...; replaces `data`",
       text(&C::database)},
      {"tls_certificate", "FILE", "", "PEM certificate chain; turns HTTPS on", text(&C::tls_certificate)},
      {"tls_key", "FILE", "", "PEM private key of the certificate", text(&C::tls_key)},
  };
}

ConfigKeys planning_settings() {
  return {
      {"workers", "N", "1", "planners at a time; only refinements run at lower priority",
       number(in(&C::service, &S::planners), 1, 1024)},
      {"plan_deadlines", "N", "1000", "approximate number of points of a frontier",
       number(in(&C::service, &S::plan_deadlines), 2, 100000)},
      {"planning_budget_s", "S", "600", "most CPU seconds to plan one pipeline",
       number(in(&C::service, &S::planning_budget_s), 0.001, 1e6), kReloads},
      {"slowdown", "PERCENT", "0%",
       "slowdown to tolerate against everything at maximum clock, for jobs without a max_slowdown policy", slowdown,
       kReloads},
      {"profiling_tolerance_pct", "P", "0.15",
       "expected energy loss of the plan, in percent, below which online profiling ends",
       number(in(&C::service, &S::profiling_tolerance_pct), 0.001, 100), kReloads},
      {"profiling_iterations", "N", "60", "iterations after which online profiling ends in any case",
       number(in(&C::service, &S::profiling_iterations), 1, 100000), kReloads},
      {"profiling_slowdown", "P", "5", "largest mean slowdown during online profiling, in percent",
       number(in(&C::service, &S::profiling_slowdown_pct), 0.01, 1000), kReloads},
      {"profiling_worst_slowdown", "P", "30", "largest slowdown of one iteration during online profiling, in percent",
       number(in(&C::service, &S::profiling_worst_slowdown_pct), 0.01, 1000), kReloads},
      {"switch_latency", "S", "0",
       "time until a clock change takes effect, in seconds, if profile, job and ranks do not give it",
       number(in(&C::service, &S::switch_latency_s), 0, 1e6)},
  };
}

ConfigKeys retention_settings() {
  return {
      {"idle_expiry_s", "S", "604800", "seconds without a request after which a job expires",
       number(in(&C::service, &S::idle_expiry_s), 1, 1e10), kReloads},
      {"keep_finished_days", "D", "365", "days after its end when a job is removed with its log; 0: never",
       number(in(&C::service, &S::keep_finished_s), 0, 36500, kSecondsOfDay), kReloads},
      {"keep_finished_mb", "MB", "1000",
       "size of all jobs' logs above which the oldest ended jobs are removed, in MB; 0: unlimited",
       number(in(&C::service, &S::keep_finished_bytes), 0, 1e8, kBytesOfMegabyte), kReloads},
      {"keep_unused_days", "D", "30", "days without use after which a profile or frontier is removed; 0: never",
       number(in(&C::service, &S::keep_unused_s), 0, 36500, kSecondsOfDay), kReloads},
  };
}

ConfigKeys limit_settings() {
  return {
      {"max_ranks", "N", "131072", "most ranks of one job", number(in(&C::service, &S::max_ranks), 1, 1 << 24),
       kReloads},
      {"max_connections", "N", "20000", "most open connections", number(in(&C::http, &H::connections), 1, 1 << 24),
       kReloads},
      {"max_connections_per_address", "N", "5000",
       "most open connections from one address (IPv6: one /64); loopback: unlimited",
       number(in(&C::http, &H::connections_per_address), 1, 1 << 24), kReloads},
      {"max_wait_s", "S", "600",
       "longest wait for a plan, in seconds; a wait ends after half of this to all of it, and the rank repeats it",
       number(in(&C::api, &A::longest_wait_s), 1, 86400), kReloads},
      {"max_waits_per_token", "N", "16384", "most ranks that wait with one token",
       number(held(&L::waits_per_token), 1, 1 << 24), kReloads},
      {"metrics_jobs", "N", "50", "jobs with series of their own in /metrics, by power; the others are summed",
       number(in(&C::api, &A::metrics_jobs), 0, 10'000)},
      {"max_live_jobs_per_token", "N", "1000", "most live jobs registered with one token",
       number(in(&C::api, &A::jobs_per_token), 1, 1 << 24), kReloads},
      {"max_ranks_per_token", "N", "1048576", "most ranks of one token's live jobs together",
       number(in(&C::api, &A::ranks_per_token), 1, 1 << 30), kReloads},
      {"max_stored_mb_per_token", "MB", "2000",
       "size of one token's job logs, profiles and frontiers, in MB, above which new jobs and profiles are refused",
       number(in(&C::api, &A::stored_bytes_per_token), 1, 1 << 30, kBytesOfMegabyte), kReloads},
      {"max_planner_s_per_token", "S", "1800",
       "CPU seconds of planning per hour for one team or token, above which all others come first",
       number(in(&C::service, &S::planner_s_per_owner), 0.001, 1e9), kReloads},
      {"max_streams_per_token", "N", "256", "most open event streams of one token",
       number(held(&L::streams_per_token), 1, 1 << 24), kReloads},
      {"max_streams_per_address", "N", "256", "most open event streams from one address; loopback: unlimited",
       number(held(&L::streams_per_address), 1, 1 << 24), kReloads},
  };
}

ConfigKeys request_settings() {
  return {
      {"max_body_mb", "N", "16", "largest body of a request, in MB",
       number(
           [](C & config) -> auto& { return config.http.limits.body_bytes; }, 1, 1024, 1 << 20),
       kReloads},
      {"request_time_s", "S", "20", "seconds within which a client must send a request", request_time, kReloads},
      {"grace_s", "S", "10", "seconds to finish requests under way after a signal to stop",
       number(&C::grace_s, 0, 3600), kReloads},
  };
}

ConfigKeys alert_settings() {
  return {
      {"alert_after_s", "S", "300",
       "seconds for which a condition must hold before its alert is raised, or be gone before it is resolved",
       number(in(&C::service, &S::alert_after_s), 0.1, 1e6), kReloads},
      {"alert_webhook", "URL", "", "URL to which alerts are sent, in the format of Prometheus Alertmanager",
       alert_webhook, kReloads},
      {"alert_webhook_token", "FILE", "", "file with the bearer token for alert_webhook", alert_token, kReloads},
  };
}

ConfigKeys dashboard_and_log_settings() {
  return {
      {"price_per_kwh", "P", "0", "price of energy for the dashboard, per kWh; 0: unknown",
       factor(&jobs::EnergyFactors::price_per_kwh), kReloads},
      {"currency", "TEXT", "", "currency of price_per_kwh",
       text([](C & config) -> auto& { return config.api.factors.currency; }), kReloads},
      {"carbon_g_per_kwh", "G", "0", "carbon intensity for the dashboard, in g per kWh; 0: unknown",
       factor(&jobs::EnergyFactors::carbon_g_per_kwh), kReloads},
      {"log_level", "LEVEL", "info", "lowest level to log: debug, info, warning or error", log_level, kReloads},
      {"log_file", "FILE", "", "file to append the log to, instead of standard error; SIGHUP opens it again",
       text(&C::log_file), kReloads},
  };
}

}  // namespace

std::span<const ConfigKey> config_table() {
  static const ConfigKeys table = [] {
    ConfigKeys all;
    for (const auto& settings : {listening_and_storage_settings, planning_settings, retention_settings, limit_settings,
                                 request_settings, alert_settings, dashboard_and_log_settings}) {
      const ConfigKeys keys = settings();
      all.insert(all.end(), keys.begin(), keys.end());
    }
    return all;
  }();
  return table;
}

std::string flag_of(const ConfigKey& key) {
  std::string flag = "--" + std::string(key.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string environment_of(const ConfigKey& key) {
  std::string name = "PERSEUS_" + std::string(key.name);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return name;
}

namespace {

Result<ServeConfig> config_of(const std::map<std::string, Setting>& settings) {
  ServeConfig config;
  config.service.keep_minutes_s = kSecondsOfDay;
  config.service.keep_hours_s = 365 * kSecondsOfDay;
  if (const Status set = apply(settings, config); !set) return set.error();
  if (config.data.empty() == config.database.empty()) {
    return Error{
        ErrorCode::usage,
        fmt::format("{} given; allowed: one of --data DIR and --database URL, where the server "
                    "keeps its jobs",
                    config.data.empty() ? "neither --data nor --database is" : "both --data and --database are")};
  }
  if (config.tls_certificate.empty() != config.tls_key.empty()) {
    return Error{ErrorCode::usage, "--tls-certificate and --tls-key: only one is given; allowed: both or neither"};
  }
  return config;
}

}  // namespace

Result<ServeConfig> read_config(const std::map<std::string, std::string>& flags, const std::string& file) {
  const auto settings = settings_of(flags, file);
  if (!settings) return settings.error();
  return config_of(*settings);
}

Result<RereadConfig> reread_config(const ServeConfig& before, const std::map<std::string, std::string>& flags,
                                   const std::string& file) {
  auto settings = settings_of(flags, file);
  if (!settings) return settings.error();
  if (const auto all = config_of(*settings); !all) return all.error();
  RereadConfig reread;
  for (const ConfigKey& key : config_table()) {
    const std::string name(key.name);
    Setting& setting = settings->at(name);
    if (setting.value == before.texts.at(name)) continue;
    (key.reloads ? reread.changed : reread.kept).push_back(name);
    if (!key.reloads) setting.value = before.texts.at(name);
  }
  auto config = config_of(*settings);
  if (!config) return config.error();
  reread.config = *std::move(config);
  return reread;
}

Result<std::string> format_config(const std::map<std::string, std::string>& flags, const std::string& file) {
  const auto settings = settings_of(flags, file);
  if (!settings) return settings.error();
  ServeConfig config;
  if (const Status set = apply(*settings, config); !set) return set.error();
  std::string text;
  for (const ConfigKey& key : config_table()) {
    std::string value = settings->at(std::string(key.name)).value;
    const bool has_secret = key.name == "database" || key.name == "alert_webhook";  // anywhere in it
    if (has_secret && !value.empty()) value = "********";
    // Numbers of TOML have no leading zeros, among other rules.
    const bool is_number = std::isfinite(formats::number_in<double>(value).value_or(INFINITY)) &&
                           formats::parse_toml("number = " + value, "").ok();
    text += fmt::format("# {} {}, or {}: {}\n{} = {}\n", flag_of(key), key.type, environment_of(key), key.meaning,
                        key.name, is_number ? value : toml_text(value));
  }
  return text;
}

}  // namespace perseus::cli
