// perseus relay: connects the ranks of this host to the server over one connection.
#include "server/relay/relay.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <memory>

#include "command_line/command.h"
#include "io/http/http_server.h"
#include "serve/stop_signals.h"

namespace perseus::cli {
namespace {

constexpr std::array kRelayErrors{ErrorCode::usage, ErrorCode::cannot_write, ErrorCode::unavailable};

struct RelaySettings {
  std::string listen = "127.0.0.1:7788";
  double exchange_s = 3;
};

Result<int> run_relay(const http::HttpPeer& server, const RelaySettings& settings) {
  const auto address = http::parse_host_port(settings.listen);
  if (!address) return Error{ErrorCode::usage, "--listen: " + address.error().message};
  if (!http::is_loopback_host(address->host)) {
    return Error{
        ErrorCode::usage,
        fmt::format(
            "--listen: {}: other hosts could connect, and a relay serves only the ranks of its own host; allowed: "
            "localhost, 127.0.0.0/8 and [::1]",
            settings.listen)};
  }
  const auto urls = http::parse_urls(server.url);
  if (!urls) return Error{ErrorCode::usage, "--server: " + urls.error().message};
  if (std::ranges::any_of(*urls, [](const http::Url& url) { return !url.password.empty(); })) {
    return Error{ErrorCode::usage,
                 "--server: the URL contains a password; allowed: a URL without one, since each rank sends its own "
                 "token (PERSEUS_TOKEN)"};
  }
  ignore_other_signals();
  boost::asio::io_context io(1);
  relay::RelayOptions options;
  options.server = server;
  options.exchange_s = settings.exchange_s;
  options.log = [](const std::string& line) { note(line); };
  relay::Relay relay(io, options);
  http::HttpServer http(io, {}, [&](http::HttpRequest request, http::Responder responder) {
    relay.handle(std::move(request), std::move(responder));
  });
  const auto port = http.listen(*address);
  if (!port) return port.error();
  boost::asio::signal_set signals(io);
  for (const int signal : kStopSignals) signals.add(signal);
  signals.async_wait([&](boost::system::error_code stopped, int) {
    if (!stopped) io.stop();
  });
  print(fmt::format("perseus: relaying on http://{} for {}\n", http::format_host_port({address->host, *port}),
                    http::without_user(server.url)));
  io.run();
  return 0;
}

}  // namespace

void add_relay(CLI::App& app, Command& command) {
  auto* relay = app.add_subcommand("relay", "Connect all ranks of this host to the server over one connection");
  const auto server = std::make_shared<http::HttpPeer>();
  add_value(*relay, "--server URL", server->url, "URL of the server, or several with commas between")->required();
  add_value(*relay, "--ca FILE", server->ca_file, "Certificates to trust instead of the system's (PEM)");
  const auto settings = std::make_shared<RelaySettings>();
  add_default(*relay, "--listen ADDRESS:PORT", settings->listen,
              "Address and port to listen on; give ranks PERSEUS_SERVER=http://ADDRESS:PORT");
  add_default(*relay, "--exchange S", settings->exchange_s,
              "Longest time that the relay holds a report of iterations, in seconds", number_within(0.1, 4, "s"));
  add_json_flag(*relay, command);
  relay->footer(help_footer(kRelayErrors, "  perseus relay --server https://head:7787 --ca /etc/perseus/ca.pem\n"));
  set_run(*relay, command, [server, settings] { return run_relay(*server, *settings); });
}

}  // namespace perseus::cli
