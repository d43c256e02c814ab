// perseus serve: the cluster-wide server.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/error_table.h"
#include "command.h"
#include "disk_watch.h"
#include "net/http_server.h"
#include "openapi_text.h"
#include "report/dashboard.h"
#include "serve_config.h"
#include "server/api.h"
#include "server/identity.h"
#include "server/metrics.h"
#include "server/service.h"
#include "server/store_access.h"
#include "server/tokens.h"
#include "server/worker_pool.h"
#include "server_store.h"
#include "service_manager.h"

namespace perseus {
namespace {

namespace asio = boost::asio;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

/// Databases, pipes, libraries; what is not a connection.
constexpr rlim_t most_own_files = 64;
/// To start with, beside those that the parent process left open.
constexpr rlim_t least_files = 48;

/// What the store has for each call after the server was told to stop.
constexpr double kLastAnswers_s = 3;

/// Without descriptors, libraries end the process, or name another cause.
Status check_files(rlim_t allowed) {
  std::error_code none_left;
  const std::filesystem::directory_iterator open("/proc/self/fd", none_left);
  rlim_t in_use = none_left == std::errc::too_many_files_open ? allowed : 0;
  if (!none_left) in_use = static_cast<rlim_t>(std::distance(begin(open), end(open)));
  if (allowed >= in_use + least_files) return Ok{};
  return Error{ErrorCode::unavailable,
               fmt::format("open files: {} (ulimit -n), of which {} are in use; allowed: at least {}", allowed, in_use,
                           in_use + least_files)};
}

/// One JSON object a line, on standard error.
class Log {
 public:
  explicit Log(const std::string& level) : logger_(spdlog::stderr_logger_st("perseus")) {
    logger_->set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%v})",
                         spdlog::pattern_time_type::utc);
    logger_->set_level(spdlog::level::from_str(level));
  }
  ~Log() { spdlog::drop("perseus"); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  void info(std::string_view message) { logger_->info(json_quoted(message)); }
  void debug(std::string_view message) { logger_->debug(json_quoted(message)); }
  void warn(std::string_view message) { logger_->warn(json_quoted(message)); }
  void error(std::string_view message) { logger_->error(json_quoted(message)); }
  /// `change`: a JSON object.
  void audit(const std::string& change) { logger_->info("\"change\",\"change\":" + change); }

 private:
  std::shared_ptr<spdlog::logger> logger_;
};

/// Makes room for that many connections; how many files there may be. To be called while there is one thread: with
/// more, the kernel doubles its table of open files only after every processor has passed a quiet moment, tens of
/// milliseconds in which accepting stands still. So the table is made large enough here, by naming its last place once.
rlim_t make_room_for(int connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t files = std::min(limit.rlim_cur, static_cast<rlim_t>(connections) + most_own_files);
  const int last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, static_cast<int>(files) - 1);
  if (last >= 0) close(last);
  return limit.rlim_cur;
}

/// A reader of the log that is gone is an error of the write, not the end of the process.
void ignore_closed_pipes() { std::signal(SIGPIPE, SIG_IGN); }

/// Calls tick() when the service has something to do.
class Ticker {
 public:
  Ticker(asio::io_context& io, server::Service& service, server::Api& api, const Clock& clock, server::Metrics& metrics)
      : timer_(io), service_(service), api_(api), clock_(clock), metrics_(metrics) {
    service_.on_earlier_wake([this] { arm(); });
    api_.on_earlier_wake([this] { arm(); });
    arm();
  }

 private:
  void arm() {
    const double next_s = std::min(service_.next_wake().value_or(1e12), api_.next_wake().value_or(1e12));
    const double wait_s = std::clamp(next_s - clock_.now_s(), 0.0, 60.0);
    timer_.expires_after(duration_cast<milliseconds>(std::chrono::duration<double>(wait_s)) + milliseconds(1));
    timer_.async_wait([this](boost::system::error_code stopped) {
      if (stopped) return;
      const server::Metrics::IoSpan span(metrics_, "timer");
      if (service_.next_wake().value_or(0) <= clock_.now_s()) service_.tick();
      api_.tick();
      arm();
    });
  }
  asio::steady_timer timer_;
  server::Service& service_;
  server::Api& api_;
  const Clock& clock_;
  server::Metrics& metrics_;
};

/// Tells the service manager that the io thread still turns, as often as it wants to hear it.
class Watchdog {
 public:
  Watchdog(asio::io_context& io, ServiceManager& manager) : timer_(io), manager_(manager) {
    if (manager_.every()) tell();
  }

 private:
  void tell() {
    manager_.alive();
    timer_.expires_after(*manager_.every());
    timer_.async_wait([this](boost::system::error_code stopped) {
      if (!stopped) tell();
    });
  }
  asio::steady_timer timer_;
  ServiceManager& manager_;
};

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

HttpServerOptions server_options(const ServeConfig& config) {
  HttpServerOptions options;
  options.limits.body_bytes = static_cast<std::size_t>(config.max_body_mb) << 20U;
  options.connections = static_cast<std::size_t>(config.max_connections);
  options.connections_per_address = static_cast<std::size_t>(config.max_connections_per_address);
  options.is_reader = server::Api::is_reader;
  options.request_time = std::chrono::seconds(config.request_time_s);
  return options;
}

Result<int> run_serve(const ServeConfig& config) {
  const auto address = parse_host_port(config.listen);
  if (!address) return Error{ErrorCode::usage, "listen: " + address.error().message};
  HttpServerOptions options = server_options(config);
  if (!config.tls_certificate.empty()) {
    auto tls = server_tls(config.tls_certificate, config.tls_key);
    if (!tls) return tls.error();
    options.tls = *tls;
  }
  const rlim_t most_files = make_room_for(config.max_connections);
  if (Status enough = check_files(most_files); !enough) return enough.error();
  ignore_closed_pipes();
  ServiceManager manager;
  Log log(config.log_level);
  asio::io_context io(1);
  const auto metrics = std::make_shared<server::Metrics>();
  const auto post_from = [&io, metrics](std::string_view whom) -> Post {
    return [&io, metrics, whom](std::function<void()> work) {
      asio::post(io, [metrics, whom, work = std::move(work)] {
        const server::Metrics::IoSpan span(*metrics, whom);
        work();
      });
    };
  };
  const UnsteppedClock clock;
  auto store = open_server_store(config.data, config.database, post_from("store"));
  if (!store) return store.error();
  if (const std::string why = (*store)->read_only(); !why.empty()) {
    log.warn("known plans are served, and nothing can be changed: " + why);
  }

  const bool local = is_loopback(address->host);
  server::Tokens tokens(**store, local);
  if (const Status loaded = tokens.load(); !loaded) return loaded.error();
  if (!local && tokens.list().empty()) {
    return Error{ErrorCode::usage,
                 fmt::format("listening on {} needs a token first, for anybody may come: perseus token create --role "
                             "infrastructure --data DIR",
                             config.listen)};
  }

  server::WorkerPool workers(config.workers, post_from("workers"));
  server::ServiceOptions service_options;
  service_options.owner = config.database.empty() ? "server" : server::random_hex_id();
  service_options.idle_expiry_s = config.idle_expiry_s;
  constexpr double day_s = 86400;
  service_options.keep_finished_s = config.keep_finished_days * day_s;
  service_options.keep_finished_bytes = std::int64_t{config.keep_finished_mb} * 1'000'000;
  service_options.keep_unused_s = config.keep_unused_days * day_s;
  service_options.max_ranks = config.max_ranks;
  service_options.plan_deadlines = config.plan_deadlines;
  service_options.slowdown = config.slowdown;
  service_options.planners = config.workers;
  service_options.planning_budget_s = config.planning_budget_s;
  service_options.profiling_tolerance_pct = config.profiling_tolerance_pct;
  service_options.profiling_iterations = config.profiling_iterations;
  service_options.profiling_slowdown_pct = config.profiling_slowdown;
  service_options.profiling_worst_slowdown_pct = config.profiling_worst_slowdown;
  service_options.switch_latency_s = config.switch_latency;
  service_options.tokens_changed = [&] {
    tokens.refresh([&](const Error& error) { log.error("tokens: " + error.message); });
  };
  auto service = server::Service::open(service_options, **store, clock, workers);
  if (!service) return service.error();
  tokens.serve((*service)->store_access());

  (*service)->subscribe_all([&log](const server::JobEvent& event) {
    constexpr std::array told{"profiling_started", "profiling_failed", "profile_known", "plan_dropped"};
    if (std::ranges::find(told, event.kind) == told.end()) return;
    log.info(fmt::format("job {}: {}", event.job, event.text));
  });

  server::ApiOptions api_options;
  api_options.metrics = metrics;
  api_options.version = PERSEUS_VERSION;
  api_options.openapi = openapi_text();
  api_options.dashboard = dashboard_page();
  api_options.hosts = config.hosts;
  api_options.later = post_from("exchange");
  api_options.audit = [&log](const std::string& change) { log.audit(change); };
  api_options.longest_wait_s = config.max_wait_s;
  api_options.jobs_per_token = config.max_live_jobs_per_token;
  api_options.ranks_per_token = config.max_ranks_per_token;
  api_options.held = {static_cast<std::size_t>(config.max_waits_per_token),
                      static_cast<std::size_t>(config.max_streams_per_token),
                      static_cast<std::size_t>(config.max_streams_per_address)};
  if (config.price_per_kwh > 0) api_options.factors.price_per_kwh = config.price_per_kwh;
  if (config.carbon_g_per_kwh > 0) api_options.factors.carbon_g_per_kwh = config.carbon_g_per_kwh;
  api_options.factors.currency = config.currency;
  std::optional<DiskWatch> disk;
  if (config.database.empty()) {
    disk.emplace(config.data, workers);
    api_options.disk = [&] { return disk->look(); };
  }
  HttpServer* running = nullptr;
  api_options.connections = [&] { return running->counts(); };
  server::Api api(**service, tokens, clock, api_options);
  options.served = [&](const ServedRequest& served) {
    metrics->served(served);
    constexpr int unavailable = 503;  // the course of things while the server stops or its database is away
    const std::string text = fmt::format("{} answered {}", served.route, served.status);
    if (served.status >= 500) served.status == unavailable ? log.debug(text) : log.error(text);
  };
  options.refuse = [&](const HttpRequest& head) { return api.refuse(head); };
  HttpServer http(io, options, [&](HttpRequest request, Responder responder) {
    api.handle(std::move(request), std::move(responder));
  });
  running = &http;
  const auto port = http.listen(*address);
  if (!port) return port.error();
  const Ticker ticker(io, **service, api, clock, *metrics);

  asio::signal_set hangups(io, SIGHUP);
  const std::function<void()> read_again = [&] {
    hangups.async_wait([&](boost::system::error_code stopped, int) {
      if (stopped) return;
      if (options.tls) {
        const auto tls = server_tls(config.tls_certificate, config.tls_key);
        if (tls) http.use_certificate(*tls);
        tls ? log.info("read the certificate again")
            : log.error("the certificate stays as it was: " + tls.error().message);
      } else {
        log.info("nothing to read again: there is no certificate");
      }
      read_again();
    });
  };
  read_again();
  int exit_code = 0;
  asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&](boost::system::error_code stopped, int signal) {
    if (stopped) return;
    log.info(fmt::format("stopping on signal {}", signal));
    manager.stopping();
    api.drain();
    hangups.cancel();
    const auto grace = duration_cast<milliseconds>(std::chrono::duration<double>(config.grace_s));
    const auto one_done = [&io, left = std::make_shared<int>(2)] {
      if (--*left == 0) io.stop();
    };
    (*service)->drain(std::min(kLastAnswers_s, config.grace_s), [&, one_done](const Result<Ok>& kept) {
      if (!kept) {
        log.error("reports of iterations that are not counted yet are lost: " + kept.error().message);
        exit_code = entry_of(ErrorCode::unavailable).exit_code;
      }
      one_done();
    });
    http.drain(grace, one_done);
  });
  const std::string host = address->host.find(':') == std::string::npos ? address->host : "[" + address->host + "]";
  print(fmt::format("perseus: serving on {}://{}:{}\n", options.tls ? "https" : "http", host, *port));
  log.info(fmt::format("serving on {}:{}{}", host, *port, tokens.required() ? "" : ", without tokens"));
  if (!tokens.required()) {
    log.info(
        "whoever reaches this server may do everything; to make the first token: perseus token create --role "
        "infrastructure --token " +
        tokens.first_secret());
  }
  if (most_files < static_cast<rlim_t>(config.max_connections)) {
    log.warn(fmt::format("max_connections is {}, but only {} files may be open: raise that limit (ulimit -n)",
                         config.max_connections, most_files));
  }
  const Watchdog watchdog(io, manager);
  manager.ready(fmt::format("serving on {}:{}", host, *port));
  io.run();
  log.info("stopped");
  // The threads that wait for a store that does not answer cannot be ended in any other way. What was acknowledged is
  // durable.
  if ((*service)->store_access()->is_busy()) std::_Exit(exit_code);
  return exit_code;
}

struct ServeOptions {
  std::map<std::string, std::string> flags;
  std::string file;
  bool print_config = false;
};

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
  serve->add_option("--config", options->file, "TOML file with any of these settings")->type_name("FILE");
  serve->add_flag("--print-config", options->print_config,
                  "Print the settings that would hold as a TOML file and exit");
  add_json_flag(*serve, command);
  serve->footer(
      help_footer("  perseus serve --listen 127.0.0.1:7787 --data DIR\n"
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
      return run_serve(*config);
    };
  });
}

}  // namespace perseus
