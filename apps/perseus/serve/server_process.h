// The process of `perseus serve`: makes the server's parts in their order, runs them, and ends them in order.
//
// Problem: each part may use those before it, and all run on one I/O thread; a reload changes them while they run.
// Input:   the settings; their flags and file, for a reload.
// Output:  a server until SIGTERM, SIGINT or SIGQUIT; SIGHUP reloads settings, tokens, certificate and log. While
//          another server may write to the database, a standby: it has an address, a log and a store, and no other
//          part.
// Errors:  of start(): those of the address, the store, the tokens and the certificate; nothing runs then. A server
//          after which another one has taken over ends, with the exit code of `unavailable`.
// Threads: the I/O thread; the parts have their own.
#pragma once

#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "io/http/http_server.h"
#include "serve/disk_watch.h"
#include "serve/serve_config.h"
#include "serve/server_log.h"
#include "serve/service_manager.h"
#include "server/access/tokens.h"
#include "server/metrics/metrics.h"
#include "server/routes/api.h"
#include "server/service/service.h"
#include "server/store/writer_watch.h"
#include "server/work/worker_pool.h"

namespace perseus::cli {

/// docs/openapi.json, as it was when this program was built.
std::string_view openapi_text();

/// Where the settings come from, besides the environment.
struct ServeOptions {
  std::map<std::string, std::string> flags;
  std::string file;
  bool print_config = false;
};

class ServerProcess final : private routes::ApiHost, private plans::ServerHost {
 public:
  /// `most_files`: number of files that this process may open. `given` must outlive it.
  ServerProcess(ServeConfig config, const ServeOptions& given, rlim_t most_files);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  Status start();
  /// Returns the exit code once it has stopped.
  int run();

 private:
  // Steps of start(), in this order.
  Status take_address();
  Status open_log();
  Status open_store();
  Status listen();
  Status serve_or_stand_by();

  // Steps of serve(), in this order.
  Status serve();
  Status load_tokens();
  Status open_service();
  Status make_api();

  // What the API wants of the process.
  void read_large(work::Executor::Work work) override {
    service_->gate.submit(work::Executor::Kind::request, std::move(work));
  }
  [[nodiscard]] std::optional<http::HttpServerCounts> connections() const override { return http_->counts(); }
  [[nodiscard]] std::optional<routes::DiskHealth> disk() override {
    return disk_ ? std::optional(disk_->look()) : std::nullopt;
  }
  void audit(const std::string& change) override { log_.audit(change); }
  void warn(const std::string& line) override { log_.warn(line); }
  void log(const std::string& line) override { log_.info(line); }
  bool may_renew() override { return !watch_ || watch_->is_sure(); }

  void writer_changed(const store::Writer& writer);
  [[nodiscard]] std::string url() const;
  /// For other servers: a host that they may resolve.
  [[nodiscard]] std::string own_url() const;
  void answer(http::HttpRequest request, http::Responder responder);

  /// Posts work to the I/O thread, and measures it under that name.
  store::Post post_from(std::string_view whom);
  [[nodiscard]] routes::ApiOptions options_of_api();
  void count_served(const http::ServedRequest& served);
  void refresh_tokens();
  void announce();
  void announce_standby();

  /// Calls tick() when the service or the API has work; call it after everything that may have made some.
  void arm_ticker();
  /// Reports to the service manager, at its interval, that the I/O thread still runs.
  void feed_watchdog();
  void reload_on_hangup();
  void wait_for_hangup();
  void stop_on_signal();
  void drain();

  /// Reads settings, tokens and the certificate again, and opens the log again. An invalid input keeps the previous
  /// value.
  void reload();
  /// Reads the settings again, and opens the log again with them. All of them take effect, or none.
  Result<RereadConfig> reread_settings();
  void apply(const RereadConfig& reread);
  void warn_of_few_files();
  void warn_of_certificate();

  ServeConfig config_;
  const ServeOptions& given_;
  rlim_t most_files_;
  http::HostPort address_;
  http::TlsContext tls_;  ///< none: plain HTTP
  boost::asio::io_context io_{1};
  std::optional<http::TakenAddress> own_address_;
  ServiceManager manager_;
  ServerLog log_;
  std::shared_ptr<metrics::Metrics> metrics_;
  UnsteppedClock clock_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<access::Tokens> tokens_;
  std::unique_ptr<work::WorkerPool> workers_;
  std::unique_ptr<service::Service> service_;
  std::optional<DiskWatch> disk_;
  std::unique_ptr<routes::Api> api_;  ///< none: the server stands by
  store::Writer writer_;
  std::unique_ptr<store::WriterWatch> watch_;
  std::unique_ptr<http::HttpServer> http_;
  std::string where_;  ///< host and port, once it listens
  boost::asio::steady_timer ticker_{io_};
  std::optional<double> armed_s_;  ///< when the ticker ends; none: it is not set
  boost::asio::signal_set hangups_{io_};
  boost::asio::signal_set signals_{io_};
  boost::asio::steady_timer watchdog_{io_};
  int exit_code_ = 0;
};

}  // namespace perseus::cli
