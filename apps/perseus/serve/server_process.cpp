#include "serve/server_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/error_table.h"
#include "command_line/command.h"
#include "io/report/dashboard.h"
#include "serve/server_store.h"
#include "serve/stop_signals.h"
#include "server/routes/standby.h"
#include "server/sqlite/sqlite_file.h"
#include "server/work/store_access.h"

namespace perseus::cli {
namespace {

namespace asio = boost::asio;
using std::chrono::duration_cast;
using std::chrono::milliseconds;

/// Time for each call of the store after the request to stop.
constexpr double kLastAnswers_s = 3;
constexpr double kLongestSleep_s = 60;

milliseconds in_milliseconds(double time_s) {
  return duration_cast<milliseconds>(std::chrono::duration<double>(time_s));
}

}  // namespace

ServerProcess::ServerProcess(ServeConfig config, const ServeOptions& given, rlim_t most_files)
    : config_(std::move(config)),
      given_(given),
      most_files_(most_files),
      log_(config_.log_level),
      metrics_(std::make_shared<metrics::Metrics>()) {}

Status ServerProcess::start() {
  ignore_other_signals();
  using Step = Status (ServerProcess::*)();
  constexpr std::array<Step, 5> steps{&ServerProcess::take_address, &ServerProcess::open_log,
                                      &ServerProcess::open_store, &ServerProcess::listen,
                                      &ServerProcess::serve_or_stand_by};
  for (const Step step : steps) {
    if (Status done = (this->*step)(); !done) return done;
  }
  reload_on_hangup();
  stop_on_signal();
  return Ok{};
}

int ServerProcess::run() {
  feed_watchdog();
  while (io_.run_one() > 0) arm_ticker();
  if (watch_) watch_->resign();
  const bool resigned = !watch_ || watch_->has_resigned_within(in_milliseconds(kLastAnswers_s));
  log_.info("stopped");
  // Such threads cannot be ended in any other way. Everything acknowledged is durable.
  if (!resigned || (service_ && service_->has_busy_thread())) std::_Exit(exit_code_);
  return exit_code_;
}

Status ServerProcess::serve_or_stand_by() {
  const auto writer = store_->become_writer(own_url());
  if (!writer) return writer.error();
  writer_ = *writer;
  if (!config_.database.empty()) {
    watch_ = std::make_unique<store::WriterWatch>(*store_, writer_, own_url(), post_from("writer"),
                                                  [this](const store::Writer& now) { writer_changed(now); });
  }
  if (writer_.is_us) return serve();
  asio::post(io_, [this] { announce_standby(); });
  return Ok{};
}

Status ServerProcess::serve() {
  using Step = Status (ServerProcess::*)();
  constexpr std::array<Step, 3> steps{&ServerProcess::load_tokens, &ServerProcess::open_service,
                                      &ServerProcess::make_api};
  for (const Step step : steps) {
    if (Status done = (this->*step)(); !done) return done;
  }
  asio::post(io_, [this] { announce(); });  // from there on, signals are handled
  return Ok{};
}

void ServerProcess::writer_changed(const store::Writer& writer) {
  writer_ = writer;
  Status serving = Ok{};
  if (writer_.is_us && !api_) serving = serve();
  if (!writer_.is_us && api_) {
    serving = Error{
        ErrorCode::unavailable,
        fmt::format("{} has taken over; this server ends, and stands by once it is started again", writer_.address)};
  }
  if (serving) return;
  log_.error(serving.error().message);
  exit_code_ = entry_of(serving.error().code).exit_code;
  io_.stop();
}

/// Before anything is written: another server may listen there.
Status ServerProcess::take_address() {
  auto address = http::parse_host_port(config_.listen);
  if (!address) return Error{ErrorCode::usage, "listen: " + address.error().message};
  address_ = *std::move(address);
  if (!config_.tls_certificate.empty()) {
    auto tls = http::server_tls(config_.tls_certificate, config_.tls_key);
    if (!tls) return tls.error();
    tls_ = *tls;
  }
  auto taken = http::take_address(io_, address_);
  if (!taken) return taken.error();
  own_address_ = std::move(*taken);
  return Ok{};
}

Status ServerProcess::open_log() {
  keep_to_ourselves();
  return log_.open(config_.log_level, config_.log_file);
}

store::Post ServerProcess::post_from(std::string_view whom) {
  return [&io = io_, metrics = metrics_, whom](std::function<void()> work) {
    asio::post(io, [metrics, whom, work = std::move(work)] {
      const metrics::Metrics::IoSpan span(*metrics, whom);
      work();
    });
  };
}

Status ServerProcess::open_store() {
  auto store = open_server_store(config_.data, config_.database, post_from("store"));
  if (!store) return store.error();
  store_ = *std::move(store);
  if (const auto found = config_.database.empty() ? sqlite::file_system_of(config_.data) : sqlite::FileSystem{};
      !found.name.empty()) {
    log_.warn(
        fmt::format("{} is on {}: if other hosts have it too, no other server may use it", config_.data, found.name));
  }
  if (const std::string why = store_->read_only(); !why.empty()) {
    log_.warn("read-only: the server serves known plans and refuses changes: " + why);
  }
  return Ok{};
}

Status ServerProcess::load_tokens() {
  const bool local = http::is_loopback_host(address_.host);
  tokens_ = std::make_unique<access::Tokens>(*store_, local);
  if (Status loaded = tokens_->load(); !loaded) return loaded;
  if (local || !tokens_->list().empty()) return Ok{};
  return Error{
      ErrorCode::usage,
      fmt::format(
          "listening on {} requires a token, since other hosts can connect; create one: perseus token create --role "
          "infrastructure --data DIR",
          config_.listen)};
}

void ServerProcess::refresh_tokens() {
  tokens_->refresh([this](const Error& error) { log_.error("tokens: " + error.message); });
}

Status ServerProcess::open_service() {
  workers_ = std::make_unique<work::WorkerPool>(config_.service.planners, post_from("workers"));
  service::ServiceOptions options = config_.service;
  options.host = this;
  auto service = service::Service::open(std::move(options), *store_, clock_, *workers_);
  if (!service) return service.error();
  service_ = *std::move(service);
  tokens_->serve(service_->store);
  return Ok{};
}

routes::ApiOptions ServerProcess::options_of_api() {
  routes::ApiOptions options = config_.api;
  options.metrics = metrics_;
  options.version = PERSEUS_VERSION;
  options.openapi = [] { return std::string(openapi_text()); };
  options.dashboard = report::dashboard_page;
  options.later = post_from("exchange");
  options.host = this;
  return options;
}

Status ServerProcess::make_api() {
  if (config_.database.empty()) disk_.emplace(config_.data, *workers_);
  api_ = std::make_unique<routes::Api>(*service_, *tokens_, clock_, options_of_api());
  return Ok{};
}

void ServerProcess::count_served(const http::ServedRequest& served) {
  metrics_->served(served);
  constexpr int server_error = 500, unavailable = 503;  // expected while it stops or its database is unavailable
  if (served.status < server_error) return;
  const std::string text = fmt::format("{} answered {}", served.route, served.status);
  served.status == unavailable ? log_.debug(text) : log_.error(text);
}

void ServerProcess::answer(http::HttpRequest request, http::Responder responder) {
  if (api_) return api_->handle(std::move(request), std::move(responder));
  responder.send(routes::standby_answer(request, writer_.address));
}

Status ServerProcess::listen() {
  http::HttpServerOptions options = config_.http;
  options.is_reader = routes::Api::is_reader;
  options.tls = tls_;
  options.served = [this](const http::ServedRequest& served) { count_served(served); };
  options.refuse = [this](const http::HttpRequest& head) { return api_ ? api_->refuse(head) : std::nullopt; };
  http_ =
      std::make_unique<http::HttpServer>(io_, options, [this](http::HttpRequest request, http::Responder responder) {
        answer(std::move(request), std::move(responder));
      });
  for (const std::string& missing : own_address_->missing) {
    log_.warn(fmt::format("not listening on {}, which {} also means", missing, address_.host));
  }
  const auto port = http_->listen(*std::move(own_address_));
  if (!port) return port.error();
  address_.port = *port;
  where_ = http::format_host_port(address_);
  return Ok{};
}

std::string ServerProcess::url() const { return fmt::format("{}://{}", tls_ ? "https" : "http", where_); }

std::string ServerProcess::own_url() const {
  const bool any = address_.host == "0.0.0.0" || address_.host == "::";
  if (!any) return url();
  return fmt::format("{}://{}", tls_ ? "https" : "http",
                     http::format_host_port({boost::asio::ip::host_name(), address_.port}));
}

void ServerProcess::arm_ticker() {
  if (!api_) return;
  const double now_s = clock_.now_s(), latest_s = now_s + kLongestSleep_s;
  const double next_s =
      std::min({latest_s, service_->next_wake().value_or(latest_s), api_->next_wake().value_or(latest_s)});
  if (armed_s_ && next_s >= *armed_s_) return;
  armed_s_ = next_s;
  ticker_.expires_after(in_milliseconds(std::max(0.0, next_s - now_s)) + milliseconds(1));
  ticker_.async_wait([this](boost::system::error_code stopped) {
    if (stopped) return;
    const metrics::Metrics::IoSpan span(*metrics_, "timer");
    armed_s_.reset();
    if (service_->next_wake().value_or(0) <= clock_.now_s()) service_->tick();
    api_->tick();
  });
}

void ServerProcess::feed_watchdog() {
  if (!manager_.every()) return;
  manager_.alive();
  watchdog_.expires_after(*manager_.every());
  watchdog_.async_wait([this](boost::system::error_code stopped) {
    if (!stopped) feed_watchdog();
  });
}

void ServerProcess::announce() {
  print(fmt::format("perseus: serving on {}\n", url()));
  log_.info(fmt::format("serving on {}{}", where_, tokens_->required() ? "" : ", without tokens"));
  if (!tokens_->required()) {
    log_.info(
        "every client that reaches this server has all rights; to create the first token: perseus token create --role "
        "infrastructure --token " +
        tokens_->first_secret());
  }
  warn_of_few_files();
  warn_of_certificate();
  manager_.ready("serving on " + where_);
}

void ServerProcess::announce_standby() {
  const std::string line = fmt::format("standing by on {}: {} serves", url(), writer_.address);
  print(fmt::format("perseus: {}\n", line));
  log_.info(line);
  warn_of_few_files();
  warn_of_certificate();
  manager_.ready(line);
}

void ServerProcess::stop_on_signal() {
  for (const int signal : kStopSignals) signals_.add(signal);
  signals_.async_wait([this](boost::system::error_code stopped, int signal) {
    if (stopped) return;
    log_.info(fmt::format("stopping on signal {}", signal));
    drain();
  });
}

void ServerProcess::drain() {
  manager_.stopping();
  if (!api_) return io_.stop();
  api_->drain();
  hangups_.cancel();
  const auto one_done = [&io = io_, left = std::make_shared<int>(2)] {
    if (--*left == 0) io.stop();
  };
  service_->drain(std::min(kLastAnswers_s, config_.grace_s), [this, one_done](const Result<Ok>& kept) {
    if (!kept) {
      log_.error("reports of iterations that were not counted yet are lost: " + kept.error().message);
      exit_code_ = entry_of(ErrorCode::unavailable).exit_code;
    }
    if (watch_) watch_->resign();  // nothing is left to write: another server need not wait for open connections
    one_done();
  });
  http_->drain(in_milliseconds(config_.grace_s), one_done);
}

// Reload.

void ServerProcess::reload_on_hangup() {
  hangups_.add(SIGHUP);
  wait_for_hangup();
}

void ServerProcess::wait_for_hangup() {
  hangups_.async_wait([this](boost::system::error_code stopped, int) {
    if (stopped) return;
    reload();
    wait_for_hangup();
  });
}

void ServerProcess::warn_of_few_files() {
  if (most_files_ >= config_.http.connections) return;
  log_.warn(fmt::format("max_connections is {}, but only {} files may be open: raise that limit (ulimit -n)",
                        config_.http.connections, most_files_));
}

void ServerProcess::warn_of_certificate() {
  const std::string doubt = http::certificate_doubt(tls_, clock_.now_s());
  if (!doubt.empty()) log_.warn(fmt::format("certificate {}: {}", config_.tls_certificate, doubt));
}

Result<RereadConfig> ServerProcess::reread_settings() {
  auto reread = reread_config(config_, given_.flags, given_.file);
  // With wrong settings, the log is rotated all the same.
  const ServeConfig& config = reread ? reread->config : config_;
  const Status opened = log_.open(config.log_level, config.log_file);
  if (!reread || opened) return reread;
  return opened.error();
}

void ServerProcess::apply(const RereadConfig& reread) {
  config_ = reread.config;
  http_->set_limits(config_.http);
  if (api_) {
    api_->set_limits(config_.api);
    service_->set_limits(config_.service);
  }
  log_.info(fmt::format("settings reloaded; changed: {}",
                        reread.changed.empty() ? "none" : fmt::format("{}", fmt::join(reread.changed, ", "))));
  if (!reread.kept.empty()) {
    log_.warn(fmt::format("these settings require a restart and keep their values: {}", fmt::join(reread.kept, ", ")));
  }
  warn_of_few_files();
}

void ServerProcess::reload() {
  const auto reread = reread_settings();
  if (reread) {
    apply(*reread);
  } else {
    log_.error("settings not reloaded, all keep their values: " + reread.error().message);
  }
  if (tokens_) refresh_tokens();
  if (config_.tls_certificate.empty()) return;
  const auto tls = http::server_tls(config_.tls_certificate, config_.tls_key);
  if (!tls) return log_.error("certificate not reloaded, the server keeps the old one: " + tls.error().message);
  tls_ = *tls;
  http_->use_certificate(tls_);
  log_.info("certificate reloaded");
  warn_of_certificate();
}

}  // namespace perseus::cli
