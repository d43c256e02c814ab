// perseus serve: the cluster-wide server.
#include <fcntl.h>
#include <fmt/format.h>
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
#include "io/http/http_server.h"
#include "io/report/dashboard.h"
#include "openapi_text.h"
#include "serve_config.h"
#include "serve_options.h"
#include "server/routes/api.h"
#include "server/routes/metrics.h"
#include "server/service/service.h"
#include "server/service/store_access.h"
#include "server/service/tokens.h"
#include "server/service/worker_pool.h"
#include "server_log.h"
#include "server_store.h"
#include "service_manager.h"

namespace perseus::cli {
namespace {

namespace asio = boost::asio;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

/// Databases, pipes, libraries: all descriptors but connections.
constexpr rlim_t kMostOwnFiles = 64;
/// Minimum at the start, besides those that the parent process left open.
constexpr rlim_t kLeastFiles = 48;

/// Time for each call of the store after the request to stop.
constexpr double kLastAnswers_s = 3;

/// Without descriptors, libraries end the process, or name another cause.
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

/// Allows that many connections; returns the allowed number of files. Call while there is one thread: with more, the
/// kernel doubles its table of open files only after every processor has passed a quiescent state, tens of
/// milliseconds in which accepting stands still. So this function enlarges the table here, by using its last entry
/// once.
rlim_t make_room_for(int connections) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return RLIM_INFINITY;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t files = std::min(limit.rlim_cur, static_cast<rlim_t>(connections) + kMostOwnFiles);
  const int last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, static_cast<int>(files) - 1);
  if (last >= 0) close(last);
  return limit.rlim_cur;
}

/// A closed reader of the log is a write error, not the end of the process.
void ignore_closed_pipes() { std::signal(SIGPIPE, SIG_IGN); }

/// Calls tick() when the service has work.
class Ticker {
 public:
  Ticker(asio::io_context& io, service::Service& service, routes::Api& api, const Clock& clock,
         routes::Metrics& metrics)
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
      const routes::Metrics::IoSpan span(metrics_, "timer");
      if (service_.next_wake().value_or(0) <= clock_.now_s()) service_.tick();
      api_.tick();
      arm();
    });
  }
  asio::steady_timer timer_;
  service::Service& service_;
  routes::Api& api_;
  const Clock& clock_;
  routes::Metrics& metrics_;
};

/// Reports to the service manager, at its interval, that the I/O thread still runs.
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

struct ServeOptions {
  std::map<std::string, std::string> flags;
  std::string file;
  bool print_config = false;
};

/// The objects that a reload changes.
struct RunningServer {
  ServeConfig& config;
  ServerLog& log;
  routes::Api& api;
  service::Service& service;
  service::Tokens& tokens;
  http::HttpServer& http;
  rlim_t most_files;
};

void warn_of_few_files(ServerLog& log, int connections, rlim_t most_files) {
  if (most_files >= static_cast<rlim_t>(connections)) return;
  log.warn(fmt::format("max_connections is {}, but only {} files may be open: raise that limit (ulimit -n)",
                       connections, most_files));
}

/// Reads the settings again, and opens the log again with them. All of them take effect, or none.
Result<RereadConfig> reread_settings(const RunningServer& server, const ServeOptions& given) {
  auto reread = reread_config(server.config, given.flags, given.file);
  // With wrong settings, the log is rotated all the same.
  const ServeConfig& config = reread ? reread->config : server.config;
  const Status opened = server.log.open(config.log_level, config.log_file);
  if (!reread || opened) return reread;
  return opened.error();
}

/// Reads settings, tokens and the certificate again, and opens the log again. An invalid input keeps the previous
/// value.
void reload(const RunningServer& server, const ServeOptions& given) {
  const auto reread = reread_settings(server, given);
  const ServeConfig& config = reread ? reread->config : server.config;
  if (!reread) {
    server.log.error("the settings stay as they were: " + reread.error().message);
  } else {
    server.config = reread->config;
    server.http.set_limits(http_options(config));
    server.api.set_limits(api_options(config));
    server.service.set_limits(service_options(config));
    server.log.info(
        fmt::format("read the settings again; changed: {}",
                    reread->changed.empty() ? "none" : fmt::format("{}", fmt::join(reread->changed, ", "))));
    if (!reread->kept.empty()) {
      server.log.warn(fmt::format("these settings need a restart to change: {}; they stay as they were",
                                  fmt::join(reread->kept, ", ")));
    }
    warn_of_few_files(server.log, config.max_connections, server.most_files);
  }
  server.tokens.refresh([&server](const Error& error) { server.log.error("tokens: " + error.message); });
  if (config.tls_certificate.empty()) return;
  const auto tls = http::server_tls(config.tls_certificate, config.tls_key);
  if (tls) server.http.use_certificate(*tls);
  tls ? server.log.info("read the certificate again")
      : server.log.error("the certificate stays as it was: " + tls.error().message);
}

Result<int> run_serve(ServeConfig config, const ServeOptions& given) {
  const auto address = http::parse_host_port(config.listen);
  if (!address) return Error{ErrorCode::usage, "listen: " + address.error().message};
  http::HttpServerOptions options = http_options(config);
  options.is_reader = routes::Api::is_reader;
  if (!config.tls_certificate.empty()) {
    auto tls = http::server_tls(config.tls_certificate, config.tls_key);
    if (!tls) return tls.error();
    options.tls = *tls;
  }
  const rlim_t most_files = make_room_for(config.max_connections);
  if (Status enough = check_files(most_files); !enough) return enough.error();
  asio::io_context io(1);
  auto own_address = http::take_address(io, *address);  // before anything is written: another server may listen there
  if (!own_address) return own_address.error();
  ignore_closed_pipes();
  ServiceManager manager;
  ServerLog log(config.log_level);
  keep_to_ourselves();
  if (const Status opened = log.open(config.log_level, config.log_file); !opened) return opened.error();
  const auto metrics = std::make_shared<routes::Metrics>();
  const auto post_from = [&io, metrics](std::string_view whom) -> store::Post {
    return [&io, metrics, whom](std::function<void()> work) {
      asio::post(io, [metrics, whom, work = std::move(work)] {
        const routes::Metrics::IoSpan span(*metrics, whom);
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

  const bool local = http::is_loopback_host(address->host);
  service::Tokens tokens(**store, local);
  if (const Status loaded = tokens.load(); !loaded) return loaded.error();
  if (!local && tokens.list().empty()) {
    return Error{ErrorCode::usage,
                 fmt::format("listening on {} needs a token first, for anybody may come: perseus token create --role "
                             "infrastructure --data DIR",
                             config.listen)};
  }

  service::WorkerPool workers(config.workers, post_from("workers"));
  service::ServiceOptions options_of_service = service_options(config);
  options_of_service.tokens_changed = [&] {
    tokens.refresh([&](const Error& error) { log.error("tokens: " + error.message); });
  };
  auto service = service::Service::open(std::move(options_of_service), **store, clock, workers);
  if (!service) return service.error();
  tokens.serve((*service)->store_access());

  (*service)->subscribe_all([&log](const jobs::JobEvent& event) {
    constexpr std::array told{"profiling_started", "profiling_failed", "profile_known", "plan_dropped"};
    if (std::ranges::find(told, event.kind) == told.end()) return;
    log.info(fmt::format("job {}: {}", event.job, event.text));
  });

  routes::ApiOptions options_of_api = api_options(config);
  options_of_api.metrics = metrics;
  options_of_api.version = PERSEUS_VERSION;
  options_of_api.openapi = openapi_text();
  options_of_api.dashboard = report::dashboard_page();
  options_of_api.later = post_from("exchange");
  options_of_api.audit = [&log](const std::string& change) { log.audit(change); };
  std::optional<DiskWatch> disk;
  if (config.database.empty()) {
    disk.emplace(config.data, workers);
    options_of_api.disk = [&] { return disk->look(); };
  }
  http::HttpServer* running = nullptr;
  options_of_api.connections = [&] { return running->counts(); };
  routes::Api api(**service, tokens, clock, std::move(options_of_api));
  options.served = [&](const http::ServedRequest& served) {
    metrics->served(served);
    constexpr int unavailable = 503;  // expected while the server stops or its database is unavailable
    const std::string text = fmt::format("{} answered {}", served.route, served.status);
    if (served.status >= 500) served.status == unavailable ? log.debug(text) : log.error(text);
  };
  options.refuse = [&](const http::HttpRequest& head) { return api.refuse(head); };
  http::HttpServer http(io, options, [&](http::HttpRequest request, http::Responder responder) {
    api.handle(std::move(request), std::move(responder));
  });
  running = &http;
  const auto port = http.listen(std::move(*own_address));
  if (!port) return port.error();
  const Ticker ticker(io, **service, api, clock, *metrics);

  asio::signal_set hangups(io, SIGHUP);
  const RunningServer server{config, log, api, **service, tokens, http, most_files};
  const std::function<void()> read_again = [&] {
    hangups.async_wait([&](boost::system::error_code stopped, int) {
      if (stopped) return;
      reload(server, given);
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
  const std::string where = http::format_host_port({address->host, *port});
  print(fmt::format("perseus: serving on {}://{}\n", options.tls ? "https" : "http", where));
  log.info(fmt::format("serving on {}{}", where, tokens.required() ? "" : ", without tokens"));
  if (!tokens.required()) {
    log.info(
        "every client that reaches this server has all rights; to make the first token: perseus token create --role "
        "infrastructure --token " +
        tokens.first_secret());
  }
  warn_of_few_files(log, config.max_connections, most_files);
  const Watchdog watchdog(io, manager);
  manager.ready("serving on " + where);
  io.run();
  log.info("stopped");
  // Threads that wait for an unresponsive store cannot be ended in any other way. Everything acknowledged is durable.
  if ((*service)->store_access()->is_busy()) std::_Exit(exit_code);
  return exit_code;
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
      return run_serve(*config, *options);
    };
  });
}

}  // namespace perseus::cli
