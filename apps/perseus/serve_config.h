// The settings of `perseus serve`: one table makes its flags, the environment's names, the TOML file and their docs.
//
// Input: a setting as text from, in this order, a flag (--idle-expiry-s 60), the environment (PERSEUS_IDLE_EXPIRY_S=60)
// or the file (idle_expiry_s = 60); else its default. Output: the settings. Errors: usage naming where the value came
// from, the value and what is allowed; a key in the file that is not in the table is one. Cost: none. Threads: any.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace perseus {

struct ServeConfig {
  std::string listen, data, database, tls_certificate, tls_key, log_level, currency;
  double idle_expiry_s = 0, keep_finished_days = 0, keep_unused_days = 0, grace_s = 0, price_per_kwh = 0,
         carbon_g_per_kwh = 0, profiling_tolerance_pct = 0, profiling_slowdown = 0, profiling_worst_slowdown = 0,
         slowdown = 0, switch_latency = 0, planning_budget_s = 0, max_wait_s = 0;
  int workers = 0, max_connections = 0, max_connections_per_address = 0, max_waits_per_token = 0,
      max_live_jobs_per_token = 0, max_ranks_per_token = 0, max_streams_per_token = 0, max_streams_per_address = 0,
      max_body_mb = 0, max_ranks = 0, request_time_s = 0, plan_deadlines = 0, profiling_iterations = 0,
      keep_finished_mb = 0;
  std::vector<std::string> hosts;
};

struct ConfigKey {
  std::string_view name;      ///< in the file; the flag has dashes, the environment capitals
  std::string_view type;      ///< for --help
  std::string_view fallback;  ///< default
  std::string_view meaning;
  std::function<Status(ServeConfig&, const std::string& text)> set;
};

std::span<const ConfigKey> config_table();
std::string flag_of(const ConfigKey& key);
std::string environment_of(const ConfigKey& key);

/// `flags`: by name, as far as they were given. `file` may be empty.
Result<ServeConfig> read_config(const std::map<std::string, std::string>& flags, const std::string& file);
/// The settings that would hold, as a TOML file with comments.
Result<std::string> format_config(const std::map<std::string, std::string>& flags, const std::string& file);

}  // namespace perseus
