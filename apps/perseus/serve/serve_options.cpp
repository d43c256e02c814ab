#include "serve/serve_config.h"

namespace perseus::cli {

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
