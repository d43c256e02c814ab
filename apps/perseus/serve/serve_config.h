// The settings of `perseus serve`: one table defines flags, environment variables, the TOML file and their
// documentation.
//
// Input:   a setting as text from, in this order, a flag (--idle-expiry-s 60), the environment
//          (PERSEUS_IDLE_EXPIRY_S=60) or the file (idle_expiry_s = 60); else its default.
// Output:  the settings.
// Errors:  usage naming the source of the value, the value and the allowed ones; also for a key in the file that is
//          not in the table.
// Threads: any.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/http/http_server.h"
#include "server/routes/api.h"
#include "server/service/service.h"

namespace perseus::cli {

struct ServeConfig {
  std::string listen, data, database, tls_certificate, tls_key, log_level, log_file, currency, alert_webhook,
      alert_webhook_token;
  double idle_expiry_s = 0, keep_finished_days = 0, keep_unused_days = 0, grace_s = 0, price_per_kwh = 0,
         carbon_g_per_kwh = 0, profiling_tolerance_pct = 0, profiling_slowdown = 0, profiling_worst_slowdown = 0,
         slowdown = 0, switch_latency = 0, alert_after_s = 0, planning_budget_s = 0, max_wait_s = 0,
         max_planner_s_per_token = 0;
  int workers = 0, max_connections = 0, max_connections_per_address = 0, max_waits_per_token = 0,
      max_live_jobs_per_token = 0, metrics_jobs = 0, max_ranks_per_token = 0, max_streams_per_token = 0,
      max_streams_per_address = 0, max_body_mb = 0, max_ranks = 0, request_time_s = 0, plan_deadlines = 0,
      profiling_iterations = 0, keep_finished_mb = 0, max_stored_mb_per_token = 0;
  std::vector<std::string> hosts;
  std::string alert_token;                   ///< content of the file alert_webhook_token
  std::map<std::string, std::string> texts;  ///< every setting by name, as it was given
};

struct ConfigKey {
  std::string_view name;      ///< in the file; the flag has dashes, the environment capitals
  std::string_view type;      ///< for --help
  std::string_view fallback;  ///< default
  std::string_view meaning;
  std::function<Status(ServeConfig&, const std::string& text)> set;
  bool needs_restart = false;  ///< a running server keeps its initial value
};

std::span<const ConfigKey> config_table();
std::string flag_of(const ConfigKey& key);
std::string environment_of(const ConfigKey& key);

/// `flags`: by name, only those given. `file` may be empty.
Result<ServeConfig> read_config(const std::map<std::string, std::string>& flags, const std::string& file);
struct RereadConfig {
  ServeConfig config;                ///< with the new values; where a setting needs a restart, with the old one
  std::vector<std::string> changed;  ///< names of the settings with new values
  std::vector<std::string> kept;     ///< names of the settings whose new values need a restart
};
/// Reads the settings of a running server again.
Result<RereadConfig> reread_config(const ServeConfig& before, const std::map<std::string, std::string>& flags,
                                   const std::string& file);
/// The resulting settings, as a TOML file with comments.
Result<std::string> format_config(const std::map<std::string, std::string>& flags, const std::string& file);

// The options of the parts; members without a setting keep their default. All of a part's limits are in them, so the
// same functions handle the start and a reload.
http::HttpServerOptions http_options(const ServeConfig& config);
service::ServiceOptions service_options(const ServeConfig& config);
routes::ApiOptions api_options(const ServeConfig& config);

}  // namespace perseus::cli
