// perseus serve: the cluster-wide server.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "command_line/command.h"
#include "serve/serve_config.h"
#include "serve/server_process.h"

namespace perseus::cli {
namespace {

// The limit on open files of `perseus serve`, which limits its connections.

/// Databases, pipes, libraries: all descriptors but connections.
constexpr rlim_t kMostOwnFiles = 64;
/// Minimum at the start, besides those that the parent process left open.
constexpr rlim_t kLeastFiles = 48;

/// Without descriptors, libraries end the process, or name another cause. Errors: unavailable.
Status check_files(rlim_t allowed) {
  std::error_code none_left;
  const std::filesystem::directory_iterator open("/proc/self/fd", none_left);
  rlim_t in_use = none_left == std::errc::too_many_files_open ? allowed : 0;
  if (!none_left) in_use = static_cast<rlim_t>(std::distance(begin(open), end(open)));
  if (allowed >= in_use + kLeastFiles) return Ok{};
  return Error{ErrorCode::unavailable,
               fmt::format("open files: {} (ulimit -n), of which {} are in use; allowed: at least {}", allowed, in_use,
                           in_use + kLeastFiles)};
}

/// Allows that many connections; returns the allowed number of files.
rlim_t make_room_for(int connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t files = std::min(limit.rlim_cur, static_cast<rlim_t>(connections) + kMostOwnFiles);
  // With several threads, the kernel doubles its table of open files only after every processor has passed a quiescent
  // state, tens of milliseconds in which accepting stands still. So this enlarges the table now, by using its last
  // entry once.
  const int last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, static_cast<int>(files) - 1);
  if (last >= 0) close(last);
  return limit.rlim_cur;
}

Result<int> run_serve(ServeConfig config, const ServeOptions& given) {
  const rlim_t most_files = make_room_for(config.max_connections);
  if (Status enough = check_files(most_files); !enough) return enough.error();
  ServerProcess server(std::move(config), given, most_files);
  if (Status started = server.start(); !started) return started.error();
  return server.run();
}

}  // namespace

void add_serve(CLI::App& app, Command& command) {
  auto* serve = app.add_subcommand("serve", "Serve plans to a cluster's training jobs, over HTTP");
  auto options = std::make_shared<ServeOptions>();
  for (const ConfigKey& key : config_table()) {
    const std::string meaning =
        key.fallback.empty() ? std::string(key.meaning) : fmt::format("{} (default {})", key.meaning, key.fallback);
    serve
        ->add_option_function<std::string>(
            flag_of(key), [options, &key](const std::string& value) { options->flags[std::string(key.name)] = value; },
            meaning)
        ->type_name(std::string(key.type));
  }
  add_value(*serve, "--config FILE", options->file, "TOML file with any of these settings");
  serve->add_flag("--print-config", options->print_config, "Print the effective settings as a TOML file and exit");
  add_json_flag(*serve, command);
  serve->footer(help_footer(kServiceErrors,
                            "  perseus serve --listen 127.0.0.1:7787 --data DIR\n"
                            "  perseus serve --config /etc/perseus.toml\n"));
  serve->callback([options, &command] {
    command.run = [options]() -> Result<int> {
      if (options->print_config) {
        const auto text = format_config(options->flags, options->file);
        if (!text) return text.error();
        print(*text);
        return 0;
      }
      const auto config = read_config(options->flags, options->file);
      if (!config) return config.error();
      return run_serve(*config, *options);
    };
  });
}

http::HttpServerOptions http_options(const ServeConfig& config) {
  http::HttpServerOptions options;
  options.limits.body_bytes = static_cast<std::size_t>(config.max_body_mb) << 20U;
  options.connections = static_cast<std::size_t>(config.max_connections);
  options.connections_per_address = static_cast<std::size_t>(config.max_connections_per_address);
  options.request_time = std::chrono::seconds(config.request_time_s);
  return options;
}

service::ServiceOptions service_options(const ServeConfig& config) {
  constexpr double day_s = 86400;
  service::ServiceOptions options;
  options.idle_expiry_s = config.idle_expiry_s;
  options.keep_finished_s = config.keep_finished_days * day_s;
  options.keep_finished_bytes = std::int64_t{config.keep_finished_mb} * 1'000'000;
  options.keep_unused_s = config.keep_unused_days * day_s;
  options.keep_minutes_s = day_s;
  options.keep_hours_s = 365 * day_s;
  options.max_ranks = config.max_ranks;
  options.plan_deadlines = config.plan_deadlines;
  options.slowdown = config.slowdown;
  options.planners = config.workers;
  options.planning_budget_s = config.planning_budget_s;
  options.planner_s_per_owner = config.max_planner_s_per_token;
  options.profiling_tolerance_pct = config.profiling_tolerance_pct;
  options.profiling_iterations = config.profiling_iterations;
  options.profiling_slowdown_pct = config.profiling_slowdown;
  options.profiling_worst_slowdown_pct = config.profiling_worst_slowdown;
  options.switch_latency_s = config.switch_latency;
  options.alert_after_s = config.alert_after_s;
  options.alert_receiver = {config.alert_webhook, config.alert_token};
  return options;
}

routes::ApiOptions api_options(const ServeConfig& config) {
  routes::ApiOptions options;
  options.hosts = config.hosts;
  options.longest_wait_s = config.max_wait_s;
  options.metrics_jobs = static_cast<std::size_t>(config.metrics_jobs);
  options.jobs_per_token = config.max_live_jobs_per_token;
  options.ranks_per_token = config.max_ranks_per_token;
  options.stored_bytes_per_token = std::int64_t{config.max_stored_mb_per_token} * 1'000'000;
  options.held = {static_cast<std::size_t>(config.max_waits_per_token),
                  static_cast<std::size_t>(config.max_streams_per_token),
                  static_cast<std::size_t>(config.max_streams_per_address)};
  if (config.price_per_kwh > 0) options.factors.price_per_kwh = config.price_per_kwh;
  if (config.carbon_g_per_kwh > 0) options.factors.carbon_g_per_kwh = config.carbon_g_per_kwh;
  options.factors.currency = config.currency;
  return options;
}

}  // namespace perseus::cli
